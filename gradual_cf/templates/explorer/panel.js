// The panel: draws what Python says (model.get), sends what a person does (model.send). No library, no build.
const h = (tag, attrs = {}, ...kids) => {
  const e = document.createElement(tag);
  for (const [k, v] of Object.entries(attrs)) k.startsWith('on') ? e[k] = v : v != null && v !== false && e.setAttribute(k, v === true ? '' : v);
  if ('disabled' in e || 'tabindex' in attrs || tag === 'summary') e.dataset.lmSuppressShortcuts = ''; // JupyterLab leaves its keys to them
  e.append(...kids.filter(k => k != null));
  return e;
};
const put = (text, fields) => text.replace(/\{(\w+)\}/g, (all, k) => k in fields ? fields[k] : all);
const SIGNS = { both: '↕', up: '↑', down: '↓', stay: '•' };
const between = (c, c2, v, fallback) => c2 > c ? (v - c)/(c2 - c) : fallback;

function needle(said, after, title) { // what the model says, what is needed, and where the answer comes to
  const x = v => 8 + 384*Math.min(1, Math.max(0, between(...said.scale, v, .5))), [from, to] = said.good.map(x);
  const text = (v, t, y = 44) => `<text x="${Math.min(386, Math.max(14, x(v)))}" y="${y}" text-anchor="middle">${t}</text>`;
  const c = said.enough ? 'yes' : 'no';
  return `<svg viewBox="0 0 400 48" role="img" aria-label="${title}">${[[8, from, 'no'], [from, to, 'yes'], [to, 392, 'no']].map(([a, z, name]) => `<rect x="${a}" y="18" width="${Math.max(0, z - a)}" height="8" class="f-${name} pale"/>`).join('')}
   ${said.marks.map(([v, t]) => `<line x1="${x(v)}" x2="${x(v)}" y1="11" y2="32" class="mark"/>${text(v, t)}`).join('')}
   ${after == null ? '' : `<circle cx="${x(after)}" cy="22" r="5" class="ring"/>`}<circle cx="${x(said.p)}" cy="22" r="6" class="f-${c}"/>
   <path d="M${x(said.p) - 6} 3h12l-6 12z" class="f-${c}"/></svg>`;
}

function track(c, row, line, sure, said) { // bars: the training rows; line: the model along this column alone; green: what is enough
  const W = 240, H = 34, { low, high } = row, x = v => W*between(low, high, v, .5);
  const ends = said.scale, y = p => H - 2 - (H - 4)*Math.min(1, Math.max(0, between(...ends, p, .5))), top = Math.max(...c.bars, 1);
  const wide = (c.high - c.low)/c.bars.length, bars = c.bars.map((n, i) => [x(c.low + i*wide), x(c.low + (i + 1)*wide), (H - 4)*n/top]);
  return `<svg viewBox="0 0 ${W} ${H}" preserveAspectRatio="none" aria-hidden="true">
   ${bars.map(([a, b, t]) => `<rect x="${a}" y="${H - t}" width="${Math.max(.5, b - a - 1)}" height="${t}" class="bar"/>`).join('')}
   ${sure ? `<rect x="${x(Math.max(low, sure[0]))}" width="${Math.max(2, x(Math.min(high, sure[1])) - x(Math.max(low, sure[0])))}" y="0" height="${H}" class="sure"/>` : ''}
   ${said.marks.map(([v]) => `<line x1="0" x2="${W}" y1="${y(v)}" y2="${y(v)}" class="tau"/>`).join('')}
   <path d="${line.map(([v, p], i) => `${i ? 'L' : 'M'}${x(v).toFixed(1)} ${y(p).toFixed(1)}`).join('')}" class="ice" vector-effect="non-scaling-stroke"/>
   ${row.now == null ? '' : `<line x1="${x(row.now)}" x2="${x(row.now)}" y1="0" y2="${H}" class="was-at" vector-effect="non-scaling-stroke"/>`}</svg>`;
}

function render({ model, el }) {
  const fixed = model.get('fixed'), T = fixed.words, table = fixed.columns.length > 0, on = (name, f) => model.on(`change:${name}`, f);
  const root = h('div', { class: 'cfx gcf' });
  let mine = {}, past = [], burst = {}, n = 0, flying = false, waiting = false, fresh = null, tab = 'order', rules = '', top = [], rows = {}, word = '';
  const number = (c, v) => v.toLocaleString(fixed.lang, { minimumFractionDigits: c.fixed ? c.places : 0, maximumFractionDigits: c.places });
  const text = (c, v) => v == null ? '' : c.levels ? c.levels[v] : c.stops ? c.stops.reduce((a, b) => Math.abs(b[0] - v) < Math.abs(a[0] - v) ? b : a)[1]
    : c.codes[v] ?? c.unit.replace('{}', number(c, v));

  // asking: one question on its way at a time, the newest wins
  const ask = () => {
    const now = JSON.stringify({ ...mine, hand: 0 });
    if (now !== rules) { rules = now; root.classList.add('busy'); status.textContent = T.looking; }
    if (flying) { waiting = true; return; }
    flying = true; ask.at = performance.now();
    model.send({ kind: 'ask', mine, tab, fresh, n: ++n });
  };
  const step = (knob, held) => { // what one knob does without a rest is one step of undo
    const now = performance.now();
    if (burst.knob !== knob || !held && now - burst.at > 1000) past.push(JSON.stringify(mine));
    burst = { knob, at: now };
  };
  const set = (change, knob = {}, held = false) => { step(knob, held); mine = { ...mine, ...change }; update(); ask(); };
  const over = (name, at, v) => { const all = { ...mine[name] }; if (v == null) delete all[at]; else all[at] = v; return { [name]: all }; };
  const send = (kind, more = {}) => model.send({ kind, ...more });
  const button = (words, onclick, more = {}) => h('button', { type: 'button', onclick, ...more }, words);
  const labelled = (words, knob) => h('label', {}, words + ' ', knob);

  // the answer on top
  const about = h('div', { class: 'about' }), status = h('p', { class: 'say', role: 'status', 'aria-live': 'polite' }), dial = h('div', { class: 'dial' });
  const hand = h('div', { class: 'by-hand' }), picture = h('div', { class: 'picture' }), tray = h('div', {});
  const find = h('input', { class: 'find', placeholder: T.index, 'aria-label': T.row, onchange: e => send('find', { name: e.target.value }) });
  const target = fixed.targets ? h('select', { 'aria-label': T.target, onchange: e => set({ target: e.target.selectedIndex }) }, ...fixed.targets.map(t => h('option', {}, t)))
    : h('input', { 'aria-label': T.target, title: T.interval, onchange: e => set({ target: e.target.value }) });
  const preset = h('select', { 'aria-label': T.preset, onchange: e => set({ preset: e.target.value }) }, ...fixed.presets.map(([name, words]) => h('option', { value: name }, words)));
  const coded = () => btoa(unescape(encodeURIComponent(JSON.stringify(mine))));
  const link = () => navigator.clipboard?.writeText(location.href.replace(/#.*/, '') + '#panel=' + coded());
  const save = () => h('a', { download: 'panel.json', href: 'data:application/json;base64,' + coded() }).click();
  const file = h('input', { type: 'file', accept: '.json', hidden: true, 'aria-label': T.open, onchange: async e => { try { send('open', { mine: JSON.parse(await e.target.files[0].text()) }); } catch { status.textContent = T.unread; } e.target.value = ''; } });
  const undo = button(T.undo, () => { burst = {}; mine = JSON.parse(past.pop()); update(); ask(); });
  const reset = button(T.reset, () => set({ hand: {} })), attempt = button(T.attempt, () => set({ hand: model.get('answer').hand })), release = button(T.release, () => set({ ways: {}, limits: {}, without: {}, locked: [], hand: {} }));
  const go = [button(T.previous, () => send('go', { by: -1 })), button(T.next, () => send('go', { by: 1 })), button(T.refused, () => send('refused'))];
  const still = fixed.still, tools = h('div', { class: 'tools' }, ...(still ? [] : [find, ...go]), undo, table || fixed.kind === 'text' ? reset : null, table ? attempt : null, release);
  const more = h('details', { class: 'more' }, h('summary', {}, T.question), h('div', { class: 'tools' }, labelled(T.target, target), labelled(T.preset, preset), button(T.keep, () => send('keep')), button(T.link, link), button(T.save, save), button(T.open, () => file.click()), file));
  const body = h('div', { class: 'knobs' }), tabs = h('div', { class: 'tabs', role: 'tablist' }), pane = h('div', { class: 'pane', role: 'tabpanel', tabindex: 0 });
  const which = h('select', { 'aria-label': T.answer, onchange: e => set({ number: e.target.selectedIndex + 1 }) });
  const chosen = h('label', { class: 'which' }, T.answer + ' ', which);
  tabs.append(...fixed.tabs.map(([name, words]) => button(words, () => { tab = name; tell(); if (model.get('panes')[tab] == null) ask(); }, { role: 'tab', 'data-tab': name })));
  root.append(about, status, dial, hand, picture, tools, still ? '' : more, tray, body, tabs, chosen, pane);
  root.addEventListener('keydown', e => { // JupyterLab keeps Enter from an input in a cell
    if (e.key === 'Enter' && e.target.matches('input:not([type=range])')) { e.target.blur(); e.target.focus(); }
  });
  el.append(root);

  function tell() { // everything but the knobs
    const said = model.get('said'), answer = model.get('answer'), panes = model.get('panes');
    about.innerHTML = said.about ?? ''; hand.innerHTML = said.hand ?? '';
    if (said.scale) dial.innerHTML = needle(said, answer.p, T.needle);
    picture.innerHTML = answer.picture ?? ''; tray.innerHTML = model.get('tray');
    for (const b of tabs.children) b.setAttribute('aria-selected', b.dataset.tab === tab);
    if (pane.shown !== panes[tab]) pane.innerHTML = pane.shown = panes[tab] ?? '…';
    chosen.hidden = tab !== 'ways' || !(fixed.count > 1); attempt.disabled = !Object.keys(answer.hand ?? {}).length; undo.disabled = !past.length;
    const many = model.get('many'); if (which.children.length !== many) which.replaceChildren(...fixed.numbers.slice(0, many).map(t => h('option', {}, t)));
    which.selectedIndex = (mine.number ?? 1) - 1;
  }

  // the table: one line for each column
  function line(i) {
    const c = fixed.columns[i], r = rows[i] = {}, name = h('div', { class: 'name' }, c.title.replace(/[a-z](?=[A-Z])|[_.]/g, '$&\u200b')), was = h('div', { class: 'was' }), dir = h('button', { type: 'button' });
    const here = () => model.get('row').columns[i], move = (v, held) => set(over('hand', i, v === here().now ? null : v), i, held);
    const open = () => here().way === 'both' && !c.levels ? ['both', 'up', 'down', 'stay'] : ['both', 'stay'];
    dir.onclick = () => { const all = open(), next = all[(all.indexOf(mine.ways[i] ?? 'both') + 1) % all.length]; set(over('ways', i, next === 'both' ? null : next)); };
    const side = h('div', { class: 'side' }), knob = h('div', { class: 'knob' });
    let knobs;
    if (c.levels) knobs = [h('select', { 'aria-label': put(T.try, { column: c.title }), onchange: e => move(+e.target.value) })];
    else {
      const slider = h('input', { type: 'range', 'aria-label': put(T.try, { column: c.title }), onpointerdown: () => { burst = {}; r.held = true; }, onpointerup: () => r.held = false,
        oninput: e => { const v = +e.target.value, now = here().now; move(c.stops ? c.stops[v][0] : now != null && Math.abs(v - now) < c.step/2 ? now : +v.toFixed(12), r.held); } });
      const field = c.stops ? h('output') : h('input', { type: 'number', step: 'any', 'aria-label': put(T.byhand, { column: c.title }), onchange: e => e.target.value !== '' && move(+e.target.value) });
      r.pic = h('div'); r.ends = h('div', { class: 'ends' }); knobs = [slider, field]; knob.append(r.pic);
    }
    const limit = button('', () => {
      const v = mine.hand[i], now = here().now, hand = over('hand', i, null);
      if (c.levels) return set({ ...hand, ...over('without', i, [...(mine.without[i] ?? []), v]) });
      const [low, high] = mine.limits[i] ?? [null, null];
      set({ ...hand, ...over('limits', i, v < now ? [v, high] : [low, v]) });
    }, { class: 'limit' });
    knob.append(knobs[0]); if (r.ends) knob.append(r.ends);
    side.append(...knobs.slice(1)); (c.levels ? knob : side).append(limit);
    r.el = h('div', { class: 'line' + (c.levels ? ' wide' : ''), 'data-column': c.name }, name, was, dir, knob, c.levels ? null : side);
    r.draw = () => { // the picture behind the slider
      if (!r.pic || !model.get('said').scale) return;
      const row = here(), lines = (model.get('lines').of ?? [])[i] ?? [];
      r.pic.innerHTML = track(c, row, lines, model.get('answer').columns?.[i]?.sure, model.get('said'));
    };
    r.update = () => {
      const row = here(), answer = model.get('answer').columns?.[i], v = mine.hand[i] ?? row.now, way = mine.ways[i] ?? row.way, limits = mine.limits[i], gone = mine.without[i];
      r.el.classList.toggle('changed', !!answer);
      was.replaceChildren(row.text, ...(answer ? [' → ', h('b', { title: answer.how }, answer.text)] : []),
        ...(limits ? [button([limits[0] != null ? '≥ ' + text(c, limits[0]) : '', limits[1] != null ? '≤ ' + text(c, limits[1]) : ''].filter(Boolean).join(', ') + ' ✕', () => set(over('limits', i)), { class: 'chip', title: T.lift })] : []),
        ...(gone ? [button('≠ ' + gone.map(g => c.levels[g]).join(', ') + ' ✕', () => set(over('without', i)), { class: 'chip', title: T.lift })] : []));
      dir.className = 'dir ' + way; dir.textContent = SIGNS[way]; dir.disabled = row.fixed;
      dir.title = row.fixed ? [put(T.fixed, { name: c.title }), row.why].filter(Boolean).join(': ') : T[way]; dir.setAttribute('aria-label', `${c.title}: ${dir.title}`);
      if (c.levels) { const p = Object.fromEntries((model.get('lines').of ?? [])[i] ?? []); knobs[0].replaceChildren(...(v == null ? [h('option', { value: '', selected: true }, row.text)] : []), ...c.levels.map((t, l) => h('option', { value: l, selected: l === v }, p[l] == null ? t : `${t} (${said(p[l])})`))); }
      else {
        const s = knobs[0], at = v ?? row.low, k = c.stops?.reduce((a, b, j) => Math.abs(b[0] - at) < Math.abs(c.stops[a][0] - at) ? j : a, 0);
        const own = row.now ?? row.low, whole = (a, b) => Math.floor((b - a)/c.step + 1e-9)*c.step; // stops lie on its steps from what it is now
        [s.min, s.max, s.step] = c.stops ? [0, c.stops.length - 1, 1] : [own - whole(row.low, own), own + whole(own, row.high), c.step]; s.value = c.stops ? k : at;
        const told = v === row.now ? row.text : text(c, v); s.setAttribute('aria-valuetext', told); s.disabled = !(row.high > row.low);
        if (c.stops) knobs[1].textContent = told; else if (document.activeElement !== knobs[1]) knobs[1].value = v ?? '';
        r.ends.replaceChildren(h('span', {}, text(c, row.low)), h('span', {}, text(c, row.high)));
      }
      limit.hidden = row.fixed || !(i in mine.hand) || row.now == null; limit.textContent = c.levels ? T.without : T.beyond;
      r.draw();
    };
    return r.el;
  }
  const said = p => { const { scale } = model.get('said'); return scale[0] === 0 && scale[1] === 1 ? p.toLocaleString(fixed.lang, { style: 'percent' }) : p.toLocaleString(fixed.lang, { maximumSignificantDigits: 4 }); };

  function lay() { // what is changed first, then what is free; the rest folded
    const changed = i => model.get('answer').columns?.[i] != null, row = model.get('row').columns, all = fixed.columns.map((_, i) => i);
    if (!top.length && all.some(changed)) top = [...all.filter(changed), ...all.filter(i => !changed(i) && !row[i].fixed)].slice(0, Math.max(6, all.filter(changed).length));
    top.push(...all.filter(i => changed(i) && !top.includes(i)));
    const few = !top.length ? all.slice(0, 8) : all.length <= 8 ? [...top, ...all.filter(i => !top.includes(i))] : top, found = all.filter(i => fixed.columns[i].title.toLowerCase().includes(word));
    const shown = word ? found : few, rest = word ? [] : all.filter(i => !few.includes(i)), key = shown.join() + '|' + rest.join();
    if (lay.key === key) return update();
    lay.key = key;
    for (const i of all) rows[i] ?? line(i);
    const opened = body.querySelector('details')?.open, had = document.activeElement;
    const filter = all.length > 8 ? h('input', { class: 'find', placeholder: T.find, 'aria-label': T.columns, value: word, oninput: e => { word = e.target.value.trim().toLowerCase(); lay(); body.querySelector('.find').focus(); } }) : null;
    body.replaceChildren(...[filter, h('div', { class: 'line heads', 'aria-hidden': true }, ...T.heads.map(t => h('div', {}, t))), ...shown.map(i => rows[i].el),
      rest.length ? h('details', { open: opened }, h('summary', {}, put(T.rest, { n: rest.length })), ...rest.map(i => rows[i].el)) : null].filter(Boolean));
    if (body.contains(had)) had.focus();
    update();
  }

  // words of a text, regions of an image
  function toggles() {
    const row = model.get('row'), lock = v => set({ locked: mine.locked.includes(v) ? mine.locked.filter(w => w !== v) : [...mine.locked, v] });
    const toggle = (words, v, title, disabled) => button(words, () => lock(v), { title, disabled, 'aria-pressed': mine.locked.includes(v), 'data-lock': v });
    if (fixed.kind === 'text') {
      const area = h('textarea', { 'aria-label': T.text, rows: 3, oninput: e => set({ hand: e.target.value === row.text ? {} : e.target.value }, 'text') });
      area.value = typeof mine.hand === 'string' ? mine.hand : row.text;
      body.replaceChildren(h('p', { class: 'cfx-soft' }, T.words), h('div', { class: 'words' }, ...row.words.map(([w, stuck]) => toggle(w, w.toLowerCase(), put(stuck ? T.fixed : T.lock, { name: w }), stuck))), area);
    } else if (fixed.kind === 'image') {
      const grid = h('div', { class: 'grid', style: `grid-template-columns:repeat(${fixed.wide},1fr);background-image:url(${row.png})` }, ...fixed.regions.map((at, i) => toggle(at, i, put(T.region, { name: at }))));
      body.replaceChildren(h('p', { class: 'cfx-soft' }, T.regions), grid);
    } else body.replaceChildren(h('p', { class: 'cfx-soft' }, T.none));
  }

  function update() { // the knobs as a person has set them
    if (table) Object.values(rows).forEach(r => r.update());
    else for (const b of body.querySelectorAll('[data-lock]')) b.setAttribute('aria-pressed', mine.locked.map(String).includes(b.dataset.lock));
    target[fixed.targets ? 'selectedIndex' : 'value'] = mine.target; preset.value = mine.preset; tell();
  }
  function anew() { // another row, or a state that was opened
    const row = model.get('row');
    if (row.fresh === fresh) return;
    fresh = row.fresh; n = 0; mine = JSON.parse(JSON.stringify(row.mine)); past = []; burst = {}; flying = waiting = false; top = []; rows = {}; lay.key = null; word = '';
    rules = JSON.stringify({ ...mine, hand: 0 }); root.classList.add('busy'); status.textContent = T.looking;
    find.value = row.name;
    if (table) lay(); else { toggles(); update(); }
    done();
  }
  const current = at => at?.[0] === fresh && at[1] >= n;
  const done = () => { if (!current(model.get('done'))) return; root.classList.remove('busy'); status.textContent = model.get('status'); if (table) lay(); else tell(); };
  on('row', anew); on('done', done); on('said', () => { if (n && current(model.get('said').at)) (window.gcfNeedle ??= []).push(performance.now() - ask.at); tell(); });
  on('lines', () => { if (current(model.get('lines').at)) { flying = false; if (waiting) { waiting = false; ask(); } } if (table) Object.values(rows).forEach(r => r.draw()); });
  for (const name of ['answer', 'panes', 'tray', 'many']) on(name, tell);
  on('status', () => { if (!root.classList.contains('busy')) status.textContent = model.get('status'); });
  anew();
  const at = location.hash.match(/#panel=([\w+/=]+)/);
  if (at && !render.opened) { render.opened = true; try { send('open', { mine: JSON.parse(decodeURIComponent(escape(atob(at[1])))) }); } catch { status.textContent = T.unread; } }
}

// without Python: what was computed answers for a single column that moves
export const still = told => {
  const heard = {}, first = told.said, near = (line, v) => line.reduce((a, b) => Math.abs(b[0] - v) < Math.abs(a[0] - v) ? b : a)[1];
  const model = { get: k => told[k], on: (k, f) => heard[k] = f, tell: (k, v) => { told[k] = v; heard[`change:${k}`]?.(); },
    send: ({ kind, mine, n }) => {
      if (kind !== 'ask') return;
      const moved = Object.keys(mine.hand), many = moved.length > 1, p = moved.length ? near(told.lines.of[moved.at(-1)], mine.hand[moved.at(-1)]) : first.p;
      const answer = told.answer.hand, same = many && Object.keys(answer).length === moved.length && moved.every(i => mine.hand[i] === answer[i]), now = same ? told.answer.p : p;
      const hand = !moved.length ? '' : many && !same ? told.fixed.words.single : now.toLocaleString(told.fixed.lang, { style: 'percent' });
      const allowed = moved.every(i => { const { way, legal } = told.row.columns[i], v = mine.hand[i]; return way !== 'stay' && !(legal && (v < legal[0] - 1e-6 || v > legal[1] + 1e-6)); });
      const at = [told.row.fresh, n]; model.tell('said', { ...first, at, p: now, hand, enough: allowed && now >= first.good[0] && now <= first.good[1] }); model.tell('lines', { ...told.lines, at }); model.tell('done', at);
    } };
  return model;
};
export const start = told => {
  document.body.dataset.jpThemeLight = !matchMedia('(prefers-color-scheme: dark)').matches; document.body.className = 'gcf-still';
  render({ model: still(told), el: document.querySelector('main') });
};
export default { render };
