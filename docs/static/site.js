// Names for controls that the widget library leaves without one, keyboard access for what scrolls, and the search.
const label = (sel, text) => document.querySelectorAll(sel).forEach(e => e.hasAttribute('aria-label') || e.setAttribute('aria-label', text));
// The widget library speaks to MathJax 2; MathJax 3 is here, which typesets the page by itself.
let mathjax = window.MathJax;
const withHub = m => { if (m && !m.Hub) m.Hub = { Queue() {} }; return m; };
withHub(mathjax);
Object.defineProperty(window, 'MathJax', { configurable: true, get: () => mathjax, set: m => { mathjax = withHub(m); } });

const mend = () => {
  document.querySelectorAll('.caption[role=heading]').forEach(e => e.setAttribute('aria-level', '2'));
  document.querySelectorAll('details.hide > summary').forEach(e => e.removeAttribute('aria-label'));
  document.querySelectorAll('.widget-play').forEach(p => ['play or pause', 'stop', 'repeat'].forEach((t, i) => { const b = p.querySelectorAll('button')[i]; if (b) b.setAttribute('aria-label', t); }));
  document.querySelectorAll('thead th').forEach(th => {   // what heads nothing is no head
    if (!th.textContent.trim() && !th.querySelector('img')) th.replaceWith(Object.assign(document.createElement('td'), { className: th.className, colSpan: th.colSpan, rowSpan: th.rowSpan }));
  });
  document.querySelectorAll('.cell_output table').forEach(table => {   // what a line is called is its head, also where a table has no index
    const lines = [...table.querySelectorAll('tbody tr')], names = lines.map(line => line.cells[0]?.textContent.trim());
    const named = names.every(name => name && isNaN(name.replace(/[,%\s]/g, ''))) && new Set(names).size === names.length;
    if (named && (lines.length > 1 || !table.querySelector('thead tr')?.cells[0].textContent.trim()) && !table.querySelector('tbody th')) lines.forEach(({ cells: [first] }) => {
      const head = Object.assign(document.createElement('th'), { className: first.className, id: first.id, innerHTML: first.innerHTML });
      first.replaceWith(head);
    });
    table.querySelectorAll('tbody th').forEach(th => th.rowSpan > 1 || (th.scope = 'row'));
    table.querySelectorAll('thead th').forEach(th => th.colSpan > 1 || (th.scope = 'col'));
  });
  document.querySelectorAll('.cell_output img[width], .cell_output img[style*=width]').forEach(img => {   // letters of a wide plot stay readable on a phone: it scrolls
    const width = parseFloat(img.getAttribute('width') || img.style.width), room = img.closest('.cell_output').clientWidth;
    img.style.minWidth = width > 2.05 * room ? `${Math.round(.72 * width)}px` : '';
  });
  label('.noUi-handle', 'step of the construction');
  label('.widget-readout', 'step of the construction');
  document.querySelectorAll('.jupyter-widgets button').forEach(b => b.getAttribute('aria-label') || b.setAttribute('aria-label', b.title || b.textContent.trim() || 'button'));
  document.querySelectorAll('.widget-play input').forEach(e => e.setAttribute('aria-label', 'play'));
  document.querySelectorAll('.jupyter-widgets .widget-image').forEach(img => {
    const text = img.parentElement && img.parentElement.querySelector('[role=status]');
    if (text) img.alt = text.textContent; else if (!img.alt) img.alt = 'A picture drawn by the notebook';
  });
  document.querySelectorAll('.highlight pre, .pst-scrollable-table-container, .cell_output, .text_html, mjx-container[display]').forEach(e => {
    if (e.scrollWidth > e.clientWidth + 1) { e.tabIndex = 0; if (!/PRE|MJX/.test(e.tagName)) { e.setAttribute('role', 'group'); e.hasAttribute('aria-label') || e.setAttribute('aria-label', 'wide content, scrolls sideways'); } }
  });
};
document.addEventListener('DOMContentLoaded', () => {
  document.querySelectorAll('table.docutils').forEach(t => /^(argument|field|setting)$/.test(t.querySelector('th')?.textContent.trim()) && t.classList.add('docments'));
  mend();
  new MutationObserver(() => { clearTimeout(mend.later); mend.later = setTimeout(mend, 100); }).observe(document.body, { childList: true, subtree: true });
  addEventListener('resize', mend);
});

// Pagefind, where pages come from a server; a browser gives no module to a page that is a file, and there Sphinx searches.
const search = async words => {
  const found = Object.assign(document.createElement('div'), { className: 'found' }), root = document.documentElement;
  root.classList.add('pagefind');
  document.querySelector('#search-results').before(found);
  try {
    const engine = await import(new URL('pagefind/pagefind.js', document.baseURI));
    await engine.options({ ranking: { metaWeights: { title: 0 } } });
    const { results } = await engine.search(words), shown = await Promise.all(results.slice(0, 20).map(r => r.data()));
    const line = ({ url, meta, excerpt }) => `<li><a href="${url}">${meta.title}</a><p>${excerpt}</p></li>`;
    found.innerHTML = `<p role="status">${results.length ? `${results.length} pages` : 'No page has this.'}</p><ol>${shown.map(line).join('')}</ol>`;
  } catch { root.classList.remove('pagefind'); found.remove(); }
};
document.addEventListener('DOMContentLoaded', () => {
  const words = new URLSearchParams(location.search).get('q'), here = document.querySelector('#search-results');
  if (here && words && location.protocol !== 'file:') search(words);
});

// The button of the search is called what stands on it, with its keys.
document.addEventListener('DOMContentLoaded', () => document.querySelectorAll('.search-button-field').forEach(b => b.removeAttribute('aria-label')));
// What opens a part of the sidebar has a name.
document.addEventListener('DOMContentLoaded', () => document.querySelectorAll('.bd-sidebar-primary details > summary').forEach(s => s.setAttribute('aria-label', `Pages below ${s.closest('li').querySelector('a').textContent}`)));
