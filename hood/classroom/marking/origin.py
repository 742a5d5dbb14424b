"""From where a browser may ask for the pages for marking.

A browser sends the marker's cookie with each request to their address, whichever page makes it, and
a page of the same origin can read what comes. So they are closed where learners' pages have that
origin. Elsewhere the browser's own word on each request is asked: `Sec-Fetch-Site`, `-Mode` and
`-Dest`, which no page can set.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

STATIC = ("marking.css", "marking.js")  # which say nothing about anybody
SHARED = (
    "The pages for marking are closed here. This hub shows everybody's pages at one address, so a "
    "page that a learner wrote could give marks with your rights as soon as you open it. Let the "
    "hub's administrator set `c.JupyterHub.subdomain_host`, or give the service an address of its "
    "own (docs/how-to/verdicts-while-they-work.md). Until then mark with `make teach` on a machine "
    "of your own"
)
UNSAID = (
    "Your browser did not say which page asks. Browsers say it in the header `Sec-Fetch-Site`, in "
    "their versions since 2023, over HTTPS and to `localhost`: open this page by such an address"
)
ELSEWHERE = "This was asked by another page: open the pages for marking in a tab of their own"


def is_shared(variables: Mapping[str, str] = os.environ) -> bool:
    """Return whether a hub gives this process and learners' servers one origin.

    Args:
        variables: those of the hub, whose `JUPYTERHUB_HOST` is empty where it has no subdomains.
    """
    return bool(variables.get("JUPYTERHUB_API_TOKEN")) and not variables.get("JUPYTERHUB_HOST")


def problem(method: str, path: str, headers: Mapping[str, str], shared: bool) -> str:
    """Return why a request is refused, as a sentence without its point; empty if it is not.

    A page comes only to a tab that opens it: neither to a script nor into a frame. It may be opened
    from elsewhere, as the hub's login does. All else comes to a page of the same origin alone.

    Args:
        path: below the address of the pages, without a slash in front.
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
