// Names for controls that the widget library leaves without one, keyboard access for what scrolls, and the search key.
const label = (sel, text) => document.querySelectorAll(sel).forEach(e => e.hasAttribute('aria-label') || e.setAttribute('aria-label', text));
const mend = () => {
  label('.noUi-handle', 'step of the construction');
  label('.widget-readout', 'step of the construction');
  document.querySelectorAll('.widget-play button, .jupyter-widgets button').forEach(b => b.title && !b.getAttribute('aria-label') && b.setAttribute('aria-label', b.title));
  document.querySelectorAll('.widget-play input').forEach(e => e.setAttribute('aria-label', 'play'));
  document.querySelectorAll('.jupyter-widgets .widget-image').forEach(img => {
    const text = img.parentElement && img.parentElement.querySelector('[role=status]');
    if (text) img.alt = text.textContent; else if (!img.alt) img.alt = 'A picture drawn by the notebook';
  });
  document.querySelectorAll('.highlight pre, .table-wrapper, .cell_output, .text_html, mjx-container[display]').forEach(e => {
    if (e.scrollWidth > e.clientWidth + 1) { e.tabIndex = 0; if (!/PRE|MJX/.test(e.tagName)) { e.setAttribute('role', 'group'); e.hasAttribute('aria-label') || e.setAttribute('aria-label', 'wide content, scrolls sideways'); } }
  });
};
document.addEventListener('DOMContentLoaded', () => {
  document.querySelectorAll('table.docutils').forEach(t => /^(argument|field|setting)$/.test(t.querySelector('th')?.textContent.trim()) && t.classList.add('docments'));
  mend();
  new MutationObserver(() => { clearTimeout(mend.later); mend.later = setTimeout(mend, 100); }).observe(document.body, { childList: true, subtree: true });
  addEventListener('resize', mend);
});
