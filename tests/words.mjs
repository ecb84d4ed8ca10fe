// The rank of the right page for words that people type, in the site's own search as a server gives it out.
// usage: node tests/words.mjs _docs ; prints JSON: for each list how many words have a right page among the first two, and the words that have not
import { chromium } from 'playwright-core';
import { createReadStream, existsSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { dirname, extname, join, normalize, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = resolve(process.argv[2]), lists = JSON.parse(readFileSync(join(dirname(fileURLToPath(import.meta.url)), 'words.json'), 'utf8'));
const kinds = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css', '.wasm': 'application/wasm', '.json': 'application/json', '.svg': 'image/svg+xml' };
const server = createServer((asked, answer) => {
  const file = join(root, normalize(decodeURIComponent(asked.url.split('?')[0])));
  if (!file.startsWith(root) || !existsSync(file)) { answer.writeHead(404).end(); return; }
  answer.writeHead(200, { 'content-type': kinds[extname(file)] ?? 'application/octet-stream' });
  createReadStream(file).pipe(answer);
}).listen(0, '127.0.0.1');
await new Promise(done => server.once('listening', done));
const b = await chromium.launch({ executablePath: process.env.CHROMIUM || '/usr/bin/chromium', args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'] });
try {
  const p = await b.newPage(), told = {};
  for (const [name, words] of Object.entries(lists)) {
    const missed = {};
    for (const [word, right] of Object.entries(words)) {
      await p.goto(`http://127.0.0.1:${server.address().port}/search.html?q=${encodeURIComponent(word)}`);
      await p.locator('.found [role=status]').waitFor({ timeout: 60000 });
      const seen = [...new Set(await p.locator('.found li > a').evaluateAll(as => as.map(a => a.getAttribute('href').split('/').pop().replace(/\.html.*/, '') || 'index')))].slice(0, 2);
      if (!seen.some(s => right.includes(s))) missed[word] = seen;
    }
    told[name] = { found: Object.keys(words).length - Object.keys(missed).length, missed };
  }
  console.log(JSON.stringify(told, null, 1));
} finally { await b.close(); server.close(); }
