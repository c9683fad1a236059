// The values of a chart at the instant that is pointed at, or chosen by keyboard; without this, the table has them.
'use strict';
(() => {
  const SVG = 'http://www.w3.org/2000/svg';
  const whole = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 });

  /** A length of time in one unit, as the server writes it. */
  function length(seconds) {
    const minutes = Math.floor(seconds / 60);
    const hours = Math.floor(minutes / 60);
    if (seconds < 60) return `${seconds} s`;
    if (minutes < 60) return `${minutes} min`;
    if (hours < 10) return `${hours}.${Math.floor((minutes % 60) / 6)} h`;
    return hours < 48 ? `${hours} h` : `${Math.floor(hours / 24)} days`;
  }
  const SHOW = {
    rate: (value) => (value < 9.95 && value % 1 ? value.toFixed(1) : whole.format(value)),
    count: (value) => whole.format(value),
    time: length,
    share: (value) => `${Math.round(value * 100)} %`,
  };

  const chosen = new Map(); // Plot -> the point that is shown.

  const partsOf = (plot) => {
    const figure = plot.closest('figure');
    return { figure, readout: figure.querySelector('.readout'), values: [...figure.querySelectorAll('[data-values]')] };
  };
  const added = (name, space) => {
    const node = space ? document.createElementNS(space, name) : document.createElement(name);
    node.dataset.added = '';
    return node;
  };

  function momentOf(plot, at) {
    const { from, step, points } = plot.dataset;
    // As the server writes it: UTC, 24 hours, and the day where there are several.
    const instant = new Date(Number(from) + at * Number(step)).toISOString().slice(0, 16).replace('T', ' ');
    return `${points * step > 20 * 3600e3 ? instant : instant.slice(11)} UTC`;
  }

  /** Shows a point of a chart; `null` for the latest. */
  function show(plot, at) {
    const { figure, readout, values } = partsOf(plot);
    const line = plot.querySelector('line.cursor');
    if (!('text' in readout.dataset)) readout.dataset.text = readout.textContent;
    if (at === null) {
      chosen.delete(plot);
      if (line) line.remove();
      readout.textContent = readout.dataset.text;
      delete readout.dataset.text;
      values.forEach((value) => { value.textContent = value.dataset.latest; });
      return;
    }
    chosen.set(plot, at);
    const cursor = line || plot.querySelector('svg.grid').appendChild(added('line', SVG));
    const x = `${((at + 0.5) / plot.dataset.points) * 100}%`;
    for (const [name, value] of Object.entries({ class: 'cursor', x1: x, x2: x, y2: '100%' })) cursor.setAttribute(name, value);
    readout.textContent = momentOf(plot, at);
    for (const value of values) {
      const known = value.dataset.values.split(',')[at];
      value.textContent = known ? SHOW[plot.dataset.unit](Number(known)) : '-';
    }
    const input = plot.querySelector('input');
    input.value = at;
    const said = values.map((value) => `${value.previousSibling ? value.previousSibling.textContent.trim() : ''} ${value.textContent}`.trim());
    input.setAttribute('aria-valuetext', `${readout.textContent}: ${said.join(', ')}`);
    figure.dataset.shows = at;
  }

  function pointAt(plot, event) {
    const box = plot.getBoundingClientRect();
    const at = Math.floor(((event.clientX - box.left) / box.width) * plot.dataset.points);
    return Math.min(plot.dataset.points - 1, Math.max(0, at));
  }

  /** An invisible slider over the chart: the arrow keys move it, and a screen reader reads its values. */
  function prepare(plot) {
    if (plot.querySelector('input')) return;
    const { figure } = partsOf(plot);
    const name = (figure.querySelector('.what, h2') || figure).textContent.trim();
    const input = added('input');
    Object.assign(input, { type: 'range', min: 0, max: plot.dataset.points - 1, value: plot.dataset.points - 1 });
    input.setAttribute('aria-label', `Time in the chart ${name}`);
    input.setAttribute('aria-valuetext', 'latest');
    input.addEventListener('input', () => show(plot, Number(input.value)));
    input.addEventListener('focus', () => show(plot, Number(input.value)));
    input.addEventListener('blur', () => show(plot, null));
    plot.append(input);
    plot.addEventListener('pointermove', (event) => show(plot, pointAt(plot, event)));
    plot.addEventListener('pointerleave', (event) => { if (event.pointerType === 'mouse' && document.activeElement !== input) show(plot, null); });
    const larger = figure.querySelector('a.larger');
    if (larger) {
      plot.classList.add('leads');
      // A finger chooses an instant; the heading leads on.
      plot.addEventListener('click', (event) => { if (event.pointerType !== 'touch') location.href = larger.href; });
    }
  }

  const all = () => document.querySelectorAll('.plot[data-points]');
  all().forEach(prepare);
  // A live page changes the values below the cursor.
  const region = document.getElementById('charts') || document.getElementById('curves');
  if (region) {
    new MutationObserver(() => {
      all().forEach(prepare);
      for (const [plot, at] of [...chosen]) {
        if (plot.isConnected) show(plot, Math.min(at, plot.dataset.points - 1)); else chosen.delete(plot);
      }
    }).observe(region, { subtree: true, attributeFilter: ['data-values', 'data-from'], childList: false });
  }
})();
