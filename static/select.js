// Selecting jobs of a list: the bar of actions appears while something is selected, and stays at hand.
//
// What is selected is kept by id: the list is live, and a selected job may leave the page and come back.
'use strict';
(() => {
  const list = document.getElementById('jobs');
  const bar = document.getElementById('bulk');
  const note = document.getElementById('selected');
  if (!list || !bar || !note) return;

  const label = document.getElementById('chosen');
  const others = document.getElementById('others');
  const [some, all, but] = bar.elements.which;
  const boxes = () => [...list.querySelectorAll('input[name=item]')];
  const selected = new Map(); // Id -> state, as it was last seen on the page.
  const stateOf = (box) => box.closest('tr').dataset.state;

  const clear = document.createElement('button');
  clear.type = 'button';
  clear.className = 'quiet';
  clear.textContent = 'Clear';
  bar.querySelector('fieldset').append(clear);
  bar.classList.add('at-hand');
  document.documentElement.dataset.scripts = '';

  /** Shows the actions that are possible in one of these states; all of them where none is, or where any state may be. */
  function offer(states) {
    const actions = [...bar.querySelectorAll('[data-states]')];
    const fits = (action) => !states || action.dataset.states.split(' ').some((state) => states.has(state));
    const isAny = actions.some(fits);
    actions.forEach((action) => { action.hidden = isAny && !fits(action) && !action.querySelector('.wrong'); });
  }

  /** Shows what is selected: in the boxes, in the head of the list, and in the bar. */
  function show() {
    const here = boxes();
    here.forEach((box) => {
      box.checked = selected.has(box.value);
      if (box.checked) selected.set(box.value, stateOf(box));
    });
    const whole = document.getElementById('whole-page');
    const count = here.filter((box) => box.checked).length;
    if (whole) {
      whole.checked = count > 0 && count === here.length;
      whole.indeterminate = count > 0 && count < here.length;
    }
    const away = selected.size - count;
    const text = `${selected.size} selected${away ? `, ${away} of them not on this page` : ''}`;
    if (label.textContent !== text) label.textContent = text;
    const left = `all matching except ${selected.size ? `the ${selected.size} selected` : 'the selected'}`;
    if (others.textContent !== left) others.textContent = left;
    const isWide = all.checked || but.checked;
    offer(isWide ? null : new Set(selected.values()));
    bar.hidden = selected.size === 0 && !isWide && !bar.querySelector('.wrong');
  }

  function say() {
    note.textContent = selected.size ? `${selected.size} selected. The actions are at the end of the page.` : 'None selected.';
  }

  list.addEventListener('change', ({ target }) => {
    const changed = target.id === 'whole-page' ? boxes() : [target].filter((box) => box.name === 'item');
    if (!changed.length) return;
    changed.forEach((box) => (target.checked ? selected.set(box.value, stateOf(box)) : selected.delete(box.value)));
    // Those that are left out are still being chosen.
    if (!but.checked) some.checked = true;
    show();
    say();
  });

  clear.addEventListener('click', () => {
    selected.clear();
    bar.querySelectorAll('input[name=item]').forEach((gone) => gone.remove());
    some.checked = true;
    bar.querySelectorAll('.wrong').forEach((wrong) => wrong.remove());
    show();
    say();
    const first = document.getElementById('whole-page') || list.querySelector('a');
    if (first) first.focus();
  });

  // Enter in a field is the button beside it.
  bar.addEventListener('keydown', (event) => {
    if (event.key !== 'Enter' || event.target.type !== 'number') return;
    event.preventDefault();
    bar.requestSubmit(event.target.closest('li').querySelector('button'));
  });

  // Those that are not on the page are sent, too.
  bar.addEventListener('formdata', ({ formData }) => {
    const sent = new Set(formData.getAll('item'));
    selected.forEach((_, id) => { if (!sent.has(id)) formData.append('item', id); });
  });

  // A browser that comes back to the page may have kept what was selected.
  const read = () => {
    boxes().filter((box) => box.checked).forEach((box) => selected.set(box.value, stateOf(box)));
    bar.querySelectorAll('input[name=item]').forEach((gone) => selected.set(gone.value, ''));
    show();
  };
  addEventListener('pageshow', read);
  bar.addEventListener('change', ({ target }) => { if (target.name === 'which') show(); });
  new MutationObserver(show).observe(list, { childList: true, subtree: true, attributeFilter: ['data-state'] });
  read();
})();
