// How many clicks from the first page to the code of five tasks, by links of the text alone: neither the sidebar nor the search is used.
// usage: node tests/clicks.mjs _docs [table.csv] ; prints JSON: a line for each task with its clicks and its way
import { chromium } from 'playwright-core';
import { writeFileSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

const [site, table] = process.argv.slice(2), most = 3;
const tasks = {   // what has to be read in the code of a page, all of it, for the task to be done
  'install': [/pip install /],
  'explain a pipeline of one\'s own': [/make_pipeline\(|Pipeline\(/, /tabular\(/, /GradualCF\(/, /\.explain\(/],
  'forbid a column': [/immutable=\[/],
  'get three ways': [/explain\([^)]*k=3/],
  'print a letter': [/letter\([^)]*format='html'/],
};
const b = await chromium.launch({ executablePath: process.env.CHROMIUM || '/usr/bin/chromium', args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'] });
try {
  const p = await b.newPage({ viewport: { width: 1280, height: 900 } }), known = new Map();
  const page = () => basename(new URL(p.url()).pathname);
  const links = 'article a[href$=".html"]:not(.headerlink):not([href*="://"])';
  const open = async file => { if (page() !== file) await p.goto(pathToFileURL(join(resolve(site), file)).href, { waitUntil: 'domcontentloaded' }); };
  const read = async file => {
    if (!known.has(file)) {
      await open(file);
      const code = await p.locator('article pre, article code').allTextContents(), hrefs = await p.locator(links).evaluateAll(as => as.map(a => a.href.split('/').pop()));
      known.set(file, { code: code.join('\n'), hrefs: [...new Set(hrefs)] });
    }
    return known.get(file);
  };
  const shortest = async needs => {   // first wide, then deep
    const ways = [['index.html']], seen = new Set(['index.html']);
    for (let way; (way = ways.shift());) {
      const { code, hrefs } = await read(way.at(-1));
      if (needs.every(need => need.test(code))) return way;
      if (way.length <= most) for (const next of hrefs) if (!seen.has(next)) { seen.add(next); ways.push([...way, next]); }
    }
    return null;
  };
  const lines = [];
  for (const [task, needs] of Object.entries(tasks)) {
    const way = await shortest(needs);
    if (way) {   // and now by the mouse
      await open('index.html');
      for (const next of way.slice(1)) { await p.locator(`article a[href="${next}"]`).first().click(); await p.waitForLoadState('domcontentloaded'); }
    }
    lines.push({ task, clicks: way ? way.length - 1 : null, arrived: !!way && page() === way.at(-1), way: (way ?? []).map(f => f.replace('.html', '')).join(' > ') });
  }
  console.log(JSON.stringify(lines, null, 1));
  if (table) writeFileSync(table, ['task,clicks,way', ...lines.map(l => `${l.task},${l.clicks},${l.way}`)].join('\n') + '\n');
  process.exitCode = lines.every(l => l.arrived) ? 0 : 1;
} finally { await b.close(); }
