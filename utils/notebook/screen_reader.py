"""Words for screen readers, which ipywidgets leaves out of its widgets.

ipywidgets names no slider and no field, does not say which of several buttons is on, and gives a
picture no alternative text. Text that changes is not read out, and a wide picture can't be scrolled
with keys.
A handler in the page adds all this. The handler belongs to a style that a widget shows, because the
browser calls a style's load handler whenever the page shows the style. If a page allows no
handlers, the widgets are as ipywidgets makes them.
"""

from __future__ import annotations

import html

SAID = "open-the-hood-said"  # the class of a widget whose changes are read out
UNSEEN = "position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)"
_HANDLER = """
const box = this.closest('.widget-vbox');
const all = (words) => box.querySelectorAll(words);
const put = (element, attributes) => {
  for (const [name, value] of Object.entries(attributes))
    if (element && element.getAttribute(name) !== value) element.setAttribute(name, value);
};
const name = () => {
  for (const said of all('.SAID .widget-html-content')) put(said, {role: 'status'});
  const words = box.querySelector('.SAID [data-alt]')?.textContent;
  for (const image of all('.widget-image')) {
    put(image, {alt: words ?? ''});
    const window = image.parentElement;
    if (window.scrollWidth > window.clientWidth)
      put(window, {tabindex: '0', role: 'group', 'aria-label': 'Scrolls sideways'});
    else window.removeAttribute('tabindex');
  }
  for (const row of all('.widget-slider')) {
    const label = row.querySelector('.widget-label').textContent;
    const shown = row.querySelector('.widget-readout');
    put(row.querySelector('[role=slider]'), {'aria-label': label,
      'aria-valuetext': shown.textContent});
    put(shown, {role: 'textbox', 'aria-label': label});
  }
  for (const row of all('.widget-toggle-buttons'))
    put(row, {role: 'group', 'aria-label': row.querySelector('.widget-label').textContent});
  for (const button of all('.widget-toggle-button'))
    put(button, {'aria-pressed': String(button.classList.contains('mod-active'))});
  for (const field of all('[placeholder]')) put(field, {'aria-label': field.placeholder});
  put(box.querySelector('.open-the-hood-wider'), {'aria-hidden': 'true'});
  const question = box.querySelector('[data-question]');
  if (question) put(box, {role: 'group', 'aria-label': question.textContent});
};
name();
box.sized ??= new ResizeObserver(name);
box.sized.observe(box);
box.named ??= new MutationObserver(name);
box.named.observe(box, {subtree: true, childList: true, characterData: true,
  attributeFilter: ['class']});
"""
_ONE_LINE = " ".join(_HANDLER.replace("SAID", SAID).split())


def style(rules: str) -> str:
    """Return a style that also gives words to the widgets of its ``VBox``."""
    return f'<style onload="{html.escape(_ONE_LINE)}">{rules}</style>'


def alternative(words: str) -> str:
    """Return invisible text: the alternative text of the picture in the same ``VBox``."""
    return f'<div data-alt style="{UNSEEN}">{html.escape(words)}</div>'
