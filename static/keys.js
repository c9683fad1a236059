// Keyboard shortcuts: `/` searches, `g` and a letter leads to a page, `j` and `k` move in a list, `x` selects, `?` shows
// them all. They are single keys without a modifier: they hold only while nothing that takes text has the focus, and
// can be turned off, for who speaks to the computer or whose reading program needs them.
'use strict';
(() => {
  const PAGES = {
    o: '', c: 'charts', j: 'jobs', f: 'failures', b: 'batches', a: 'access', l: 'locks', u: 'faults', r: 'rules', t: 'audit', e: 'tree',
  };
  const root = new URL('../', document.currentScript.src);
  /** How long `g` waits for its letter, in ms. */
  const PAUSE = 1500;
  let leader = -Infinity; // When `g` was pressed.

  const NAME = 'queuekeeper.keys';
  let isOn = true;
  // Where the browser keeps nothing for us, they are on.
  try { isOn = localStorage.getItem(NAME) !== 'off'; } catch { /* As it is. */ }
  function turn(on) {
    isOn = on;
    try { localStorage.setItem(NAME, on ? 'on' : 'off'); } catch { /* It holds for this page alone. */ }
  }

  const takesText = (node) => Boolean(node && node.closest && node.closest('input:not([type=checkbox]), textarea, select, [contenteditable]'));
  const rows = () => [...document.querySelectorAll('main .list tbody tr, main .groups > li, main .found, main article.item')]
    .filter((row) => row.querySelector('a[href]'));
  const linkOf = (row) => row.querySelector('a[href]');

  const pathOf = (link) => new URL(link.href).pathname.slice(root.pathname.length);
  // The page of all queues has none of these.
  const pageOf = (key) => [...document.querySelectorAll('#nav a')].find((link) => pathOf(link) === PAGES[key]);

  function move(by) {
    const all = rows();
    if (!all.length) return;
    const at = all.findIndex((row) => row.contains(document.activeElement));
    const next = at < 0 ? (by > 0 ? 0 : all.length - 1) : Math.min(all.length - 1, Math.max(0, at + by));
    linkOf(all[next]).focus();
    all[next].scrollIntoView({ block: 'nearest' });
  }

  function select() {
    const row = document.activeElement && document.activeElement.closest('tr');
    const box = row && row.querySelector('input[type=checkbox]');
    if (box) box.click();
    return Boolean(box);
  }

  function help() {
    const known = document.getElementById('keys');
    if (known) { known.showModal(); return; }
    const dialog = document.createElement('dialog');
    dialog.id = 'keys';
    dialog.setAttribute('aria-labelledby', 'keys-title');
    const title = document.createElement('h2');
    title.id = 'keys-title';
    title.textContent = 'Keyboard shortcuts';
    const list = document.createElement('dl');
    const lines = [
      ['/', 'Search'], ['j, k', 'Next, previous item of a list'], ['Enter', 'Open the item'], ['x', 'Select the item'],
      ...[...document.querySelectorAll('#nav a')].flatMap((link) => {
        const letter = Object.keys(PAGES).find((key) => PAGES[key] === pathOf(link));
        return letter ? [[`g ${letter}`, link.firstChild.textContent.trim()]] : [];
      }),
      ['?', 'Show this list'], ['Esc', 'Close it'],
    ];
    for (const [keys, text] of lines) {
      const term = document.createElement('dt');
      const key = document.createElement('kbd');
      key.textContent = keys;
      term.append(key);
      const what = document.createElement('dd');
      what.textContent = text;
      list.append(term, what);
    }
    const form = document.createElement('form');
    form.method = 'dialog';
    const label = document.createElement('label');
    const box = document.createElement('input');
    box.type = 'checkbox';
    box.checked = isOn;
    box.addEventListener('change', () => turn(box.checked));
    label.append(box, ' Use these keys');
    const button = document.createElement('button');
    button.textContent = 'Close';
    form.append(label, button);
    dialog.append(title, list, form);
    document.body.append(dialog);
    dialog.showModal();
  }

  const settings = document.getElementById('settings');
  if (settings) {
    const button = document.createElement('button');
    button.className = 'quiet';
    button.textContent = 'Keyboard shortcuts';
    button.addEventListener('click', help);
    settings.append(button);
    settings.hidden = false;
  }

  document.addEventListener('keydown', (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.altKey || event.metaKey || event.isComposing) return;
    if (!isOn || takesText(event.target) || document.querySelector('dialog[open]')) return;
    const isSecond = performance.now() - leader < PAUSE;
    leader = -Infinity;
    const { key } = event;
    const page = isSecond && key in PAGES && pageOf(key);
    if (page) {
      event.preventDefault();
      location.href = page.href;
    } else if (key === 'g') {
      leader = performance.now();
    } else if (key === '/') {
      const search = document.getElementById('find');
      if (search) { event.preventDefault(); search.focus(); search.select(); }
    } else if (key === 'j' || key === 'k') {
      event.preventDefault();
      move(key === 'j' ? 1 : -1);
    } else if (key === 'x') {
      if (select()) event.preventDefault();
    } else if (key === '?') {
      event.preventDefault();
      help();
    }
  });
})();
