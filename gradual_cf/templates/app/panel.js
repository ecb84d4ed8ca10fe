const SAID = {
  ended: 'This panel has stopped: the process that answers it has ended, perhaps for want of memory. ' +
    'What is shown can still be read, but nothing answers any more. Its settings are lost, ' +
    'and so are answers in the tray that were not saved to a file.',
  lost: 'No connection to the app: the page cannot answer now, and tries again by itself. If the app was ' +
    'stopped in the terminal, start it there again and open the address that it prints.',
  never: 'The panel has not come yet. The terminal that the app was started in may say why.',
};
const SLOW = 90000, begun = Date.now(), gone = document.getElementById('gone');
const say = (what, again) => {
  gone.dataset.what = what;
  const words = document.createElement('p'), button = document.createElement('button');
  words.textContent = SAID[what] || '';
  button.textContent = 'Start a new panel';
  button.onclick = () => location.reload();
  if (again) words.append(button);
  gone.replaceChildren(...(what ? [words] : []));
};
const onStatus = (_, status) => { if (/dead|restarting/.test(status)) say('ended', true); };
const onConnection = (_, state) => {
  if (gone.dataset.what === 'ended') return;
  say(state === 'connected' ? '' : 'lost', state === 'disconnected');
};
const look = setInterval(() => {
  const kernel = window.jupyterapp?.widgetManager?.kernel, late = Date.now() - begun > SLOW;
  if (!kernel) return late && !gone.dataset.what && say('never', true);
  clearInterval(look);
  if (gone.dataset.what === 'never') say('');
  kernel.statusChanged.connect(onStatus);
  kernel.connectionStatusChanged.connect(onConnection);
  document.getElementById('main')?.setAttribute('role', 'main');
}, 250);

const dark = matchMedia('(prefers-color-scheme: dark)');
const paint = () => {
  document.body.dataset.jpThemeLight = !dark.matches;
  document.body.dataset.jpThemeName = dark.matches ? 'JupyterLab Dark' : 'JupyterLab Light';
};
dark.addEventListener('change', paint);
paint();
window.addEventListener('pageshow', e => { if (e.persisted) location.reload(); });
window.voila_process = () => {};
if (location.search.includes('token=')) history.replaceState(null, '', location.pathname);
