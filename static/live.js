// Keeps an open page live: one stream of events while it is visible, and only what has changed is changed.
//
// The server sends whole regions; each is merged into the page element by element, so that what has the focus, is
// selected, open or scrolled stays so. What would move the line under the pointer waits until the pointer has left it.
'use strict';
(() => {
  const root = new URL('../', document.currentScript.src);
  const page = document.documentElement;
  const note = document.getElementById('live');
  const behind = document.getElementById('behind');
  if (!note || !behind || !window.ReadableStream) return;

  // ---- What the reader is busy with ----

  /** How long a change may wait for the pointer to go away, in ms. */
  const PATIENCE = 8000;
  const waiting = new Map(); // Region's name -> { html, since }
  let pointed = null;

  const row = (node) => node && node.closest && node.closest('[data-key], tr, li, a, button, summary, input, select');
  const focused = () => (document.activeElement && document.activeElement !== document.body ? document.activeElement : null);
  const selection = () => {
    const chosen = getSelection();
    return chosen && !chosen.isCollapsed ? chosen : null;
  };
  const isBusy = (region) => {
    const chosen = selection();
    return Boolean((pointed && pointed.isConnected && region.contains(pointed)) || region.contains(focused())
      || (chosen && chosen.containsNode(region, true)));
  };

  // ---- Merging ----

  /** What an element is, whatever it says: a link is where it leads. */
  const keyOf = (node) => (node.nodeType === 1 ? node.id || node.dataset.key || node.getAttribute('href') || '' : '');
  const isAlike = (a, b) => a.nodeType === b.nodeType && a.nodeName === b.nodeName && keyOf(a) === keyOf(b);
  /** Whether another script has added it to the page, which no rendering of the server has. */
  const isAdded = (node) => node.nodeType === 1 && 'added' in node.dataset;
  const childrenOf = (node) => [...node.childNodes].filter((child) => (child.nodeType === 1 || child.nodeType === 3) && !isAdded(child));
  const behindAdded = (node) => { let next = node; while (next && isAdded(next)) next = next.nextSibling; return next; };

  /** Merges `to` into `from`, an element like it. When gentle, nothing comes, goes or moves. Gives whether all is done. */
  function merge(from, to, gentle) {
    if (from.nodeType === 3) return mergeText(from, to);
    if (from.nodeName === 'TIME' && from.getAttribute('datetime') === to.getAttribute('datetime')) return true;
    mergeAttributes(from, to);
    if (from.nodeName === 'TEXTAREA' || from.isEqualNode(to)) return true;
    return mergeChildren(from, to, gentle);
  }

  function mergeText(from, to) {
    if (from.nodeValue === to.nodeValue) return true;
    const chosen = selection();
    if (chosen && chosen.containsNode(from, true)) return false;
    from.nodeValue = to.nodeValue;
    return true;
  }

  function mergeAttributes(from, to) {
    // Whether it is open, and what was typed into it, is the reader's.
    const isOwn = (name) => (name === 'open' && from.nodeName === 'DETAILS')
      || ((name === 'value' || name === 'checked') && from === document.activeElement);
    for (const { name, value } of [...to.attributes]) {
      if (!isOwn(name) && from.getAttribute(name) !== value) from.setAttribute(name, value);
    }
    for (const { name } of [...from.attributes]) {
      if (!isOwn(name) && !to.hasAttribute(name)) from.removeAttribute(name);
    }
  }

  /** Finds for each new child the old one that it continues: by its key, else the next like it. */
  function match(old, fresh) {
    const keyed = new Map();
    for (const child of old.filter(keyOf)) {
      const key = child.nodeName + keyOf(child);
      keyed.set(key, [...(keyed.get(key) || []), child]);
    }
    const rest = old.filter((child) => !keyOf(child));
    return fresh.map((child) => {
      if (keyOf(child)) return (keyed.get(child.nodeName + keyOf(child)) || []).shift() || null;
      const at = rest.findIndex((other) => isAlike(other, child));
      return at < 0 ? null : rest.splice(0, at + 1)[at];
    });
  }

  function mergeChildren(from, to, gentle) {
    const old = childrenOf(from);
    const fresh = childrenOf(to);
    const matched = match(old, fresh);
    const isSame = old.length === fresh.length && matched.every((child, at) => child === old[at]);
    let done = true;
    matched.forEach((child, at) => {
      // Where something comes or goes, what has no key may be about something else now.
      if (!child || (gentle && !isSame && !keyOf(child))) return;
      if (!merge(child, fresh[at], gentle)) done = false;
    });
    if (isSame) return done;
    if (gentle) return false;
    const kept = new Set(matched);
    for (const child of old) {
      if (kept.has(child)) continue;
      if (child.contains(focused())) done = false; else child.remove();
    }
    let next = behindAdded(from.firstChild);
    matched.forEach((child, at) => {
      if (!child) {
        from.insertBefore(fresh[at], next);
      } else {
        // An element that has the focus would lose it by being moved: the others are moved around it.
        while (next && next !== child && child.contains(focused())) {
          const aside = next;
          next = behindAdded(next.nextSibling);
          from.appendChild(aside);
        }
        if (next === child) next = behindAdded(child.nextSibling); else from.insertBefore(child, next);
      }
    });
    return done;
  }

  /** Changes a region; a list in it whose items come and go keeps its height, so that nothing below it moves. */
  function steadily(region, change) {
    const list = region.querySelector('[data-steady]');
    const before = list && list.getBoundingClientRect().height;
    const done = change();
    if (list && list.isConnected) {
      list.style.height = '';
      if (Math.abs(list.getBoundingClientRect().height - before) > 1) list.style.height = `${before}px`;
    }
    return done;
  }

  /** Lists take the height that they need once the reader does something, who then expects the page to move. */
  const settle = () => document.querySelectorAll('[data-steady]').forEach((list) => { list.style.height = ''; });
  for (const kind of ['click', 'keydown', 'resize']) addEventListener(kind, settle);

  function show(name, html) {
    const region = document.getElementById(name);
    const template = document.createElement('template');
    template.innerHTML = html;
    const fresh = template.content.firstElementChild;
    // The page was another one when it was loaded, as one without data is.
    if (!region) location.reload();
    if (!region || !fresh || region.nodeName !== fresh.nodeName) return;
    const late = waiting.get(name);
    const since = late ? late.since : performance.now();
    const gentle = isBusy(region) && performance.now() - since < PATIENCE;
    const anchor = gentle && pointed && region.contains(pointed) ? pointed : null;
    const before = anchor && anchor.getBoundingClientRect().top;
    const done = steadily(region, () => merge(region, fresh, gentle));
    if (done) waiting.delete(name); else waiting.set(name, { html, since });
    if (anchor) scrollBy(0, anchor.getBoundingClientRect().top - before);
    tellTimes(region);
    if (region.dataset.title) showInWindow(region.dataset);
  }

  /** What the window's title and icon say: all that is seen of a page behind others. */
  function showInWindow({ title, icon }) {
    // Of several queues, the one of this page is named.
    const queue = document.querySelector('.switch b');
    document.title = [title, ...(queue ? [queue.textContent] : []), 'queuekeeper'].join(' · ');
    const link = document.querySelector('link[rel=icon]');
    const href = new URL(icon, root).href;
    if (link && link.href !== href) link.href = href;
  }

  const catchUp = () => waiting.forEach(({ html }, name) => show(name, html));

  document.addEventListener('pointerover', (event) => {
    const before = pointed;
    pointed = event.pointerType === 'mouse' ? row(event.target) : null;
    if (before !== pointed && waiting.size) setTimeout(catchUp, 100);
  });
  document.documentElement.addEventListener('pointerleave', () => { pointed = null; catchUp(); });
  document.addEventListener('focusout', () => setTimeout(catchUp, 100));

  // ---- Times ----

  /** By how much the server's clock is ahead of the reader's, in ms. */
  let ahead = 0;
  /** An instant as the server writes it everywhere, so that a page shows one format: UTC, 24 hours. */
  const exactly = (at) => `${at.toISOString().slice(0, 19).replace('T', ' ')} UTC`;

  /** A length of time in one unit, as the server writes it. */
  function ago(ms) {
    const seconds = Math.max(0, Math.floor(ms / 1000));
    const minutes = Math.floor(seconds / 60);
    const hours = Math.floor(minutes / 60);
    if (seconds < 60) return `${seconds} s`;
    if (minutes < 60) return `${minutes} min`;
    if (hours < 10) return `${hours}.${Math.floor((minutes % 60) / 6)} h`;
    return hours < 48 ? `${hours} h` : `${Math.floor(hours / 24)} days`;
  }

  function tellTime(time, now) {
    const at = new Date(time.dateTime);
    if (Number.isNaN(at.getTime())) return;
    // What is not seen any more does not age.
    const asOf = time.closest('[data-as-of]');
    const text = ago((asOf ? new Date(asOf.dataset.asOf) : now) - at);
    if (time.textContent !== text) time.textContent = text;
    const title = exactly(at);
    if (time.title !== title) time.title = title;
  }

  function tellTimes(within) {
    const now = Date.now() + ahead;
    // Those without a title are instants already.
    within.querySelectorAll('time[datetime][title]').forEach((time) => tellTime(time, now));
  }

  // ---- The stream ----

  /** A stream that says nothing for so long is dead, in ms; it says something every 5 s. */
  const DEAD = 16000;
  let open = null; // What aborts the stream.
  let tries = 0;
  let heard = 0;
  let timer = 0;

  function showState(state, text) {
    page.dataset.live = state;
    if (note.textContent !== text) note.textContent = text;
  }

  const handle = {
    region(data) { show(data.name, data.html); },
    beat(data) {
      ahead = Date.parse(data.now) - Date.now();
      tries = 0;
      showState('on', '');
      behind.textContent = data.behind_seconds === null ? '' : `, ${Math.max(0.1, data.behind_seconds).toFixed(1)} s behind`;
    },
  };

  function take(event) {
    const name = /^event: (.*)$/m.exec(event);
    const data = /^data: (.*)$/m.exec(event);
    if (name && data && handle[name[1]]) handle[name[1]](JSON.parse(data[1]));
  }

  async function listen(signal) {
    const path = location.pathname.slice(root.pathname.length) + location.search;
    const url = new URL(`events?page=${encodeURIComponent(path)}`, root);
    const response = await fetch(url, { signal, headers: { Accept: 'text/event-stream' } });
    if (!response.ok) throw Object.assign(new Error(response.statusText), { status: response.status, retry: Number(response.headers.get('Retry-After')) });
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let text = '';
    for (;;) {
      const { value, done } = await reader.read();
      if (done) throw new Error('the stream has ended');
      heard = performance.now();
      const events = (text + value).split('\n\n');
      text = events.pop();
      events.forEach(take);
    }
  }

  /** Where there is no stream, the page is read again from time to time. */
  async function reread() {
    const response = await fetch(location.href, { headers: { Accept: 'text/html' } });
    if (!response.ok) throw new Error(response.statusText);
    const html = await response.text();
    for (const [, name, region] of html.matchAll(/<!--live ([\w-]+)-->([^]*?)<!--\/live \1-->/g)) show(name, region);
  }

  async function connect() {
    clearTimeout(timer);
    // A page that asks something stays as it is until it is answered.
    if (open || document.hidden || 'still' in page.dataset) return;
    const stream = open = new AbortController();
    heard = performance.now();
    try {
      await listen(stream.signal);
    } catch (error) {
      if (open !== stream) return;
      open = null;
      let pause = Math.min(30, 2 ** tries) * (0.75 + Math.random() / 2);
      tries += 1;
      if (error.status === 503 || error.status === 429) {
        pause = error.retry || 30;
        const why = error.status === 503 ? 'the server is busy' : 'too many live pages of this user or address are open; close some';
        showState('off', `not live: ${why}. Shown again every ${pause} s`);
        reread().catch(() => {});
      } else if (error.status >= 400 && error.status < 500) {
        showState('off', 'not live: reload the page');
        return;
      } else {
        showState('off', 'not live: reconnecting');
      }
      timer = setTimeout(connect, pause * 1000);
    }
  }

  function disconnect() {
    clearTimeout(timer);
    const stream = open;
    open = null;
    if (stream) stream.abort();
  }

  // A hidden page needs no stream, and browsers open few connections to one host.
  document.addEventListener('visibilitychange', () => { tries = 0; if (document.hidden) disconnect(); else connect(); });
  addEventListener('pagehide', disconnect);
  addEventListener('pageshow', connect);
  addEventListener('online', () => { tries = 0; connect(); });

  /** How often a hidden page is read for its title and icon, in ms: it has no stream. */
  const HIDDEN = 60000;
  let glanced = performance.now();
  const hasVerdict = () => document.querySelector('[data-title]') && !('still' in page.dataset);

  setInterval(() => {
    if (document.hidden && hasVerdict() && performance.now() - glanced > HIDDEN) {
      glanced = performance.now();
      reread().catch(() => { document.title = 'not live · queuekeeper'; });
    }
    if (document.hidden) return;
    tellTimes(document);
    catchUp();
    if (open && performance.now() - heard > DEAD) {
      disconnect();
      showState('off', 'not live: reconnecting');
      connect();
    }
  }, 1000);

  const rendered = document.querySelector('#fresh time');
  if (rendered) ahead = Date.parse(rendered.dateTime) - Date.now();
  tellTimes(document);
  connect();
})();
