# SPDX-License-Identifier: Apache-2.0
"""A DAG as HTML that folds, and links aliases to their anchors and back.

It is one piece and loads nothing else. Each time that a view is shown its ids are unique, so two
views on one page don't link into each other.
"""

import os

from .model import Row, ViewModel

_DEEPEST = 64  # browsers open no more than some hundred levels
_BACK = 5  # aliases that an anchor links to

_STYLE = """
.pydag-view{padding-left:1.2em;font:13px/1.5 ui-monospace,Menlo,Consolas,monospace;
white-space:pre-wrap}
.pydag-view details,.pydag-view .leaf{margin-left:1.4em}
.pydag-view>details{margin-left:0}
.pydag-view summary{cursor:pointer;margin-left:-1.1em}
.pydag-view .step{opacity:.65}
.pydag-view .conf{color:#8a6d00}
.pydag-view a{color:#0b62c4;text-decoration:none;font-weight:bold;scroll-margin-top:3em}
.pydag-view a:target{background:#ffe08a}
.pydag-view .totals{margin-top:.4em;opacity:.8}
@media (prefers-color-scheme:dark){.pydag-view a{color:#7db7ff}.pydag-view .conf{color:#d8b94a}
.pydag-view a:target{background:#665200}}
"""

# Unfolds the details around the target of a link.
_SCRIPT = """
(function(){var open=function(hash){var n=hash&&document.getElementById(hash.slice(1));
for(;n;n=n.parentElement)if(n.tagName==="DETAILS")n.open=true;};
var root=document.getElementById("%s");
root&&root.addEventListener("click",function(e){var a=e.target.closest&&e.target.closest("a");
if(a)open(a.getAttribute("href"));});open(location.hash);})();
"""


def escaped(text: str) -> str:
    """The text, as HTML."""
    import html  # loads a table of two thousand names that only a notebook needs

    return html.escape(text.encode("utf-8", "backslashreplace").decode())


class _HtmlWriter:
    def __init__(self, model: ViewModel, depth: int | None, limit: int | None) -> None:
        self._model, self._id = model, f"pydag-{os.urandom(6).hex()}"
        depth = _DEEPEST if depth is None else min(depth, _DEEPEST)
        self._rows = list(model.rows(depth, limit))
        self._displayed = {row.position for row in self._rows}

    def write(self) -> str:
        """The whole piece."""
        parts: list[str] = []
        level = 0  # how many details are open
        for row in self._rows:
            parts.append("</details>" * (level - row.level))
            level = min(level, row.level)
            line = self._line(row)
            if row.has_rows:
                is_open = " open" if row.level < 2 else ""
                parts.append(f"<details{is_open}><summary>{line}</summary>")
                level += 1
            else:
                parts.append(f'<div class="leaf">{line}</div>')
        parts.append("</details>" * level)
        if more := self._model.more(self._rows):
            parts.append(f"<div>{more}</div>")
        parts.append(f'<div class="totals">{escaped(self._model.foot())}</div>')
        return (
            f'<div class="pydag-view" id="{self._id}"><style>{_STYLE}</style>'
            f"{''.join(parts)}<script>{_SCRIPT % self._id}</script></div>"
        )

    def _line(self, row: Row) -> str:
        model, position = self._model, row.position
        parts = []
        if step := model.step(position):
            parts.append(f'<span class="step">{escaped(step)}:</span>')
        parts += [self._mark(position), escaped(model.name(position))]
        if configuration := model.configuration(position):
            parts.append(f'<span class="conf">{escaped(configuration)}</span>')
        if note := model.note(position):
            parts.append(f'<span class="step">{escaped(note.strip())}</span>')
        parts.append(row.hidden)
        return " ".join(filter(None, parts))

    def _mark(self, position: int) -> str:
        listing, mark = self._model.listing, self._model.mark(position)
        if not mark:
            return ""
        if anchor := self._model.anchor(position, self._displayed):
            return f"{escaped(mark)} {escaped(anchor)}"
        if listing.records[position].is_alias:
            return self._link(position, listing.target(position), mark)
        aliases = [slot for slot in listing.slots_of(position)[1:] if slot in self._displayed]
        if not aliases:
            return escaped(mark)
        back = [self._link(None, slot, "↩") for slot in aliases[1:_BACK]]
        return " ".join([self._link(position, aliases[0], mark), *back])

    def _link(self, source: int | None, target: int, text: str) -> str:
        own = "" if source is None else f' id="{self._id}-{source}"'
        path = escaped(self._model.path(target))
        return f'<a{own} href="#{self._id}-{target}" title="{path}">{escaped(text)}</a>'


def html_piece(model: ViewModel, depth: int | None, limit: int | None) -> str:
    """The HTML of a view, as part of a page."""
    return _HtmlWriter(model, depth, limit).write()


def html_page(piece: str) -> str:
    """A whole page."""
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>pydag</title>'
        f"</head><body>{piece}</body></html>\n"
    )
