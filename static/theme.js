// The theme that the reader has chosen: set before the page is drawn, so that it does not flash in the other one.
'use strict';
(() => {
  const NAME = 'queuekeeper.theme';
  const THEMES = ['system', 'light', 'dark'];
  const page = document.documentElement;
  const read = () => {
    // Where the browser keeps nothing for us, the system's setting holds.
    try { return localStorage.getItem(NAME); } catch { return null; }
  };
  const apply = (theme) => {
    if (theme === 'light' || theme === 'dark') page.dataset.theme = theme; else delete page.dataset.theme;
  };
  apply(read());
  // Another page of ours has changed it.
  addEventListener('storage', (event) => { if (event.key === NAME) apply(event.newValue); });

  document.addEventListener('DOMContentLoaded', () => {
    const settings = document.getElementById('settings');
    if (!settings) return;
    const select = document.createElement('select');
    select.setAttribute('aria-label', 'Theme');
    for (const theme of THEMES) select.append(new Option(`${theme} theme`, theme));
    select.value = page.dataset.theme || 'system';
    select.addEventListener('change', () => {
      apply(select.value);
      try { localStorage.setItem(NAME, select.value); } catch { /* It holds for this page alone. */ }
    });
    settings.append(select);
    settings.hidden = false;
  });
})();
