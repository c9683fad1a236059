// A button beside each id that copies it.
//
// Lists are live: what comes later gets its button, too, and the merging of regions leaves the buttons alone.
'use strict';
(() => {
  const main = document.getElementById('main');
  if (!main) return;
  const note = document.createElement('p');
  note.className = 'hidden';
  note.setAttribute('role', 'status');
  main.after(note);

  /** Jobs, batches and access requests, ARKs, sessions, UUIDs; a text that was cut is none. */
  const ID = /^([jbq]id\d{10}|ark:\/\S+[^\s…]|0x[0-9a-f]+|(bid-)?[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})$/;

  /** Where a button is: behind the id, or behind the link that it is. */
  const place = (id) => id.closest('a') || id;

  async function copy(id) {
    const text = id.textContent;
    // Without a secure connection, browsers copy nothing but what is selected.
    if (navigator.clipboard) return navigator.clipboard.writeText(text);
    getSelection().selectAllChildren(id);
    const done = document.execCommand('copy');
    getSelection().removeAllRanges();
    if (!done) throw new Error('the browser does not copy');
    return undefined;
  }

  function icon() {
    const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
    svg.setAttribute('viewBox', '0 0 16 16');
    svg.setAttribute('aria-hidden', 'true');
    for (const [x, y] of [[2, 2], [6, 6]]) {
      const sheet = document.createElementNS('http://www.w3.org/2000/svg', 'rect');
      Object.entries({ x, y, width: 8, height: 8, rx: 1.5 }).forEach(([name, value]) => sheet.setAttribute(name, value));
      svg.append(sheet);
    }
    return svg;
  }

  function button(id) {
    const made = document.createElement('button');
    made.type = 'button';
    made.className = 'copy';
    made.dataset.added = '';
    made.title = 'Copy';
    made.setAttribute('aria-label', `Copy ${id.textContent}`);
    made.append(icon());
    made.addEventListener('click', () => {
      copy(id).then(() => 'Copied', () => 'Not copied').then((said) => {
        note.textContent = `${said} ${id.textContent}`;
        made.dataset.said = said;
        setTimeout(() => { delete made.dataset.said; note.textContent = ''; }, 2000);
      });
    });
    return made;
  }

  function add() {
    const ids = [...main.querySelectorAll('code')].filter((code) => 'copy' in code.dataset || ID.test(code.textContent));
    const places = new Set(ids.map(place));
    main.querySelectorAll('.copy').forEach((old) => { if (!places.has(old.previousElementSibling)) old.remove(); });
    ids.forEach((id) => {
      const next = place(id).nextElementSibling;
      if (!next || !next.classList.contains('copy')) place(id).after(button(id));
    });
  }

  new MutationObserver(add).observe(main, { childList: true, subtree: true });
  add();
})();
