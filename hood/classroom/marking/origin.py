"""Decide which requests may reach the pages for marking.

A browser sends the marker's cookie with each request to the address of these pages, even if another
page makes the request. If that page has the same origin, it can also read the reply. So the pages
for marking are closed if learners' pages have the same origin. Otherwise, a request's headers
`Sec-Fetch-Site`, `Sec-Fetch-Mode` and `Sec-Fetch-Dest` decide, because the browser sets them, and
no page can set them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

STATIC = ("marking.css", "marking.js")  # they contain nothing about people
SHARED = (
    "The pages for marking are closed here. This hub shows everybody's pages at one address, so a "
    "learner's page could give marks with your rights as soon as you open it. Ask the hub's "
    "administrator to set `c.JupyterHub.subdomain_host`, or to give the service its own address "
    "(docs/how-to/subdomains.md). Until then, mark with `make teach` on your own "
    "machine"
)
UNSAID = (
    "Your browser did not say which page sent this request. Use a browser from 2023 or later, and "
    "an address that begins with `https:` or is on `localhost`: then the browser sends the header "
    "`Sec-Fetch-Site`, which says where a request comes from"
)
ELSEWHERE = "Another page sent this request: open the pages for marking in their own tab"


def is_shared(variables: Mapping[str, str] = os.environ) -> bool:
    """Return whether this process and learners' servers have the same origin on a hub.

    Args:
        variables: the environment variables from the hub. `JUPYTERHUB_HOST` is empty if the hub has
            no subdomains.
    """
    return bool(variables.get("JUPYTERHUB_API_TOKEN")) and not variables.get("JUPYTERHUB_HOST")


def problem(method: str, path: str, headers: Mapping[str, str], shared: bool) -> str:
    """Return why a request is refused, as a sentence without a full stop; empty if it is allowed.

    A page is sent only to a browser tab, not to a script or a frame. The tab may come from a link
    on another site, such as the hub's login. Everything else is sent only to pages of the same
    origin.

    Args:
        path: the path below the address of the pages, without a leading slash.
        shared: whether learners' pages have the same origin.
    """
    if path in STATIC:
        return ""
    if shared:
        return SHARED
    site, mode, to = (headers.get(f"Sec-Fetch-{name}") for name in ("Site", "Mode", "Dest"))
    if not site:
        return UNSAID
    if method == "GET" and not path.startswith("api/"):
        in_a_tab = (mode, to) == ("navigate", "document")
        return "" if in_a_tab else ELSEWHERE
    return "" if site == "same-origin" else ELSEWHERE
