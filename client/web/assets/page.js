// Brings a page up to date by server-sent events, and draws its curves. Every page is complete
// without it, except that it then stays as it was loaded.
'use strict';
(() => {
  const one = (query, root = document) => root.querySelector(query);
  const all = (query, root = document) => [...root.querySelectorAll(query)];
  const make = (tag, text = '', fields = {}) =>
    Object.assign(document.createElement(tag), {textContent: text}, fields);
  const variable = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  // ---- Parts -------------------------------------------------------------------------------

  const kFocusable = 'a, button, summary, input, select, [tabindex]';

  // Replaces a part; keeps the focus, what is unfolded and what is scrolled.
  const replace = (part, html) => {
    const focus = all(kFocusable, part).indexOf(document.activeElement);
    const open = all('details', part).map((fold) => fold.open);
    const scrolled = all('.scroll', part).map((box) => [box.scrollLeft, box.scrollTop]);
    part.innerHTML = html;  // escaped by the program, and the policy runs no script in it
    all('details', part).forEach((fold, i) => { if (i < open.length) fold.open = open[i]; });
    all('.scroll', part).forEach((box, i) => {
      if (i < scrolled.length) [box.scrollLeft, box.scrollTop] = scrolled[i];
    });
    if (focus >= 0) all(kFocusable, part)[focus]?.focus({preventScroll: true});
    load(part);
  };

  // Fetches what a page leaves for later, one piece after the other.
  let loading = Promise.resolve();
  const load = (root) => {
    for (const place of all('[data-load]', root)) {
      const address = place.dataset.load;
      loading = loading.then(async () => {
        if (!place.isConnected) return;
        try {
          const answer = await fetch(address);
          if (answer.ok) place.innerHTML = await answer.text();
        } catch { /* The link stays. */ }
      });
    }
  };

  const away = (text) => { one('#away').textContent = text; };

  const follow = (address) => {
    let last = Date.now();
    let lost = '';
    const source = new EventSource(address);
    const on = (name, act) => source.addEventListener(name, (event) => {
      last = Date.now();
      act(event.data);
    });
    on('heartbeat', () => { if (lost) away(lost = ''); });
    on('away', (text) => away(text));
    on('parts', (data) => {
      for (const [id, html] of Object.entries(JSON.parse(data))) {
        const log = id === 'log' && one('#log');
        if (log) {
          const end = log.scrollHeight - log.scrollTop - log.clientHeight < 40;
          log.innerHTML = html;
          if (end) log.scrollTop = log.scrollHeight;
        }
        for (const part of all(`[data-part="${id}"]`)) replace(part, html);
      }
    });
    on('curves', (data) => chart?.take(JSON.parse(data)));
    on('end', () => { if (document.body.dataset.reloads) location.reload(); });
    source.onerror = () => {
      lost = source.readyState === EventSource.CLOSED
        ? '`ablate web` was restarted: open the address that it printed last.'
        : '`ablate web` doesn\u2019t answer; trying again.';
      away(lost);
    };
    setInterval(() => {
      if (Date.now() - last > 40000) away(lost = 'No news for 40 seconds; trying again.');
    }, 5000);
  };

  // ---- Completion --------------------------------------------------------------------------

  const kOffered = 12;
  let names = null;

  // Offers names for the word before the cursor, as a combobox.
  const complete = (field, number) => {
    const list = make('ul', '', {className: 'offers', id: `offers-${number}`, role: 'listbox', hidden: true});
    let at = -1;
    field.after(list);
    field.role = 'combobox';
    field.setAttribute('aria-autocomplete', 'list');
    field.setAttribute('aria-controls', list.id);
    const typed = () => field.value.slice(0, field.selectionStart).match(/[^\s()=<>!,"']*$/)[0];
    const close = () => {
      list.hidden = true;
      at = -1;
      field.setAttribute('aria-expanded', 'false');
      field.removeAttribute('aria-activedescendant');
    };
    const take = (name) => {
      const start = field.selectionStart - typed().length, rest = field.value.slice(field.selectionStart);
      field.value = field.value.slice(0, start) + name + rest;
      field.setSelectionRange(start + name.length, start + name.length);
      close();
    };
    const mark = (to) => {
      at = (to + list.children.length) % list.children.length;
      [...list.children].forEach((item, i) => item.setAttribute('aria-selected', i === at));
      field.setAttribute('aria-activedescendant', list.children[at].id);
    };
    field.addEventListener('input', async () => {
      names ??= await fetch('/names').then((answer) => answer.json()).catch(() => []);
      const word = typed().toLowerCase();
      const rank = (name) => [name.startsWith(word), name.includes(`.${word}`), name.includes(word)].indexOf(true);
      const found = word === '' ? [] : names.map((name) => [rank(name.toLowerCase()), name])
        .filter(([place, name]) => place >= 0 && name !== typed()).sort(([a], [b]) => a - b).slice(0, kOffered);
      if (found.length === 0) return close();
      list.replaceChildren(...found.map(([, name], i) => {
        const item = make('li', name, {role: 'option', id: `${list.id}-${i}`});
        item.onmousedown = (event) => { event.preventDefault(); take(name); };
        return item;
      }));
      at = -1;
      list.hidden = false;
      field.setAttribute('aria-expanded', 'true');
    });
    field.addEventListener('keydown', (event) => {
      if (list.hidden) return;
      if (event.key === 'ArrowDown') mark(at + 1);
      else if (event.key === 'ArrowUp') mark(at < 0 ? -1 : at - 1);
      else if (event.key === 'Escape') close();
      else if (event.key === 'Enter' && at >= 0) take(list.children[at].textContent);
      else return;
      event.preventDefault();
    });
    field.addEventListener('blur', close);
  };

  // ---- Drawings of a table -----------------------------------------------------------------

  const kWide = 800, kHigh = 370, kLeft = 70, kRight = 740, kTop = 34, kBottom = 330;
  const kFixedColumns = 3;  // run, state and step

  // Draws the numbers of a table's rows: the second column over the first, or a line per row through
  // an axis per column. Every mark links to its row.
  const drawTable = (place, table) => {
    const svg = (tag, fields, text = '') => {
      const made = document.createElementNS('http://www.w3.org/2000/svg', tag);
      for (const [name, value] of Object.entries(fields)) made.setAttribute(name, value);
      made.textContent = text;
      return made;
    };
    const parallel = place.dataset.kind === 'parallel';
    const rows = [...table.tBodies[0].rows].map((row) => ({
      link: one('a', row).href, name: row.cells[0].textContent,
      values: [...row.cells].slice(kFixedColumns).map((cell) => parseFloat(cell.textContent)),
    }));
    const columns = all('thead th', table).slice(kFixedColumns).map((head, i) => {
      const found = rows.map((row) => row.values[i]).filter(Number.isFinite);
      return {name: head.textContent, i, found: found.length, low: Math.min(...found), high: Math.max(...found)};
    }).filter((column) => column.found > 0).slice(0, parallel ? 20 : 2);
    if (columns.length < 2) {
      place.append(make('p', 'Two columns need numbers to be drawn.', {className: 'muted'}));
      return;
    }
    const at = (column, row, from, to) => column.high > column.low
      ? from + (to - from) * (row.values[column.i] - column.low) / (column.high - column.low) : (from + to) / 2;
    const across = (n) => kLeft + (kRight - kLeft) * n / (columns.length - 1);
    const picture = svg('svg', {class: 'drawing', viewBox: `0 0 ${kWide} ${kHigh}`, role: 'group'});
    picture.append(svg('title', {}, `${columns.map((column) => column.name).join(', ')}, also in the table below`));
    const label = (x, y, anchor, text) => picture.append(svg('text', {x, y, 'text-anchor': anchor}, text));
    const axis = (x1, y1, x2, y2) => picture.append(svg('line', {class: 'axis', x1, y1, x2, y2}));
    if (parallel) {
      columns.forEach((column, n) => {
        axis(across(n), kBottom, across(n), kTop);
        label(across(n), n % 2 ? 24 : 12, 'middle', column.name);
        label(across(n), kBottom + 16, 'middle', column.low);
        label(across(n) + 4, kTop + 8, 'start', column.high);
      });
    } else {
      const [x, y] = columns;
      axis(kLeft, kBottom, kRight, kBottom);
      axis(kLeft, kBottom, kLeft, kTop);
      label(kLeft, kBottom + 16, 'start', x.low);
      label(kRight, kBottom + 16, 'end', x.high);
      label((kLeft + kRight) / 2, kBottom + 32, 'middle', x.name);
      label(kLeft - 6, kBottom, 'end', y.low);
      label(kLeft - 6, kTop + 8, 'end', y.high);
      label(kLeft, kTop - 10, 'start', y.name);
    }
    for (const row of rows) {
      const known = columns.filter((column) => Number.isFinite(row.values[column.i]));
      if (known.length < 2) continue;
      const link = svg('a', {href: row.link});
      const points = columns.flatMap((column, n) => known.includes(column)
        ? [`${across(n).toFixed(1)},${at(column, row, kBottom, kTop).toFixed(1)}`] : []);
      const mark = parallel ? svg('polyline', {points: points.join(' ')})
        : svg('circle', {cx: at(columns[0], row, kLeft, kRight), cy: at(columns[1], row, kBottom, kTop), r: 4});
      mark.append(svg('title', {}, `${row.name}: ${known.map((column) => row.values[column.i]).join(', ')}`));
      link.append(mark);
      picture.append(link);
    }
    place.append(picture);
  };

  // ---- Curves ------------------------------------------------------------------------------

  const kDashes = [null, [7, 3], [2, 2], [7, 2, 2, 2], [12, 3], [4, 2, 1, 2]];
  const kTableRows = 12;
  const short = (value) => Number(value).toPrecision(4).replace('-', '\u2212');

  // Draws curves of rows [step, [low, mean, high] or null, …] in `box`.
  const makeChart = (box) => {
    let rows = new Map(), labels = [], hues = [], graph = null, waiting = false, at = -1;
    const legend = make('ul', '', {className: 'legend'});
    const readout = one('#readout'), table = one('#curve-table');
    const control = (id) => one(`#${id}`);
    box.after(legend);

    const options = () => ({
      labels: ['step', ...labels],
      customBars: true,
      xlabel: 'step',
      colors: hues.map((hue) => variable(`--hue${hue}`)),
      axisLineColor: variable('--muted'),
      gridLineColor: variable('--line'),
      fillAlpha: .13,
      strokeWidth: 1.6,
      connectSeparatedPoints: true,
      rollPeriod: Number(control('smooth')?.value ?? 1),
      logscale: control('log-y')?.checked ?? false,
      axes: {x: {logscale: control('log-x')?.checked ?? false}, y: {axisLabelWidth: 64}},
      series: Object.fromEntries(labels.map((label, i) => {
        const before = hues.slice(0, i).filter((hue) => hue === hues[i]).length;
        return [label, {strokePattern: kDashes[before % kDashes.length]}];
      })),
      highlightCallback: (event, step, points) => read(step, points),
    });

    const sorted = () => {
      const list = [...rows.values()].sort((a, b) => a[0] - b[0]);
      return control('log-x')?.checked ? list.filter((row) => row[0] > 0) : list;
    };

    const read = (step, points) => {
      readout.textContent = `step ${Number(step).toPrecision(6) / 1}: ` + points
        .filter((point) => Number.isFinite(point.yval)).slice(0, 12)
        .map((point) => `${point.name} ${short(point.yval)}`).join(' \u00b7 ');
    };

    const fillTable = (list) => {
      const every = Math.max(1, Math.ceil(list.length / kTableRows));
      const shown = list.filter((_, i) => i % every === 0 || i === list.length - 1);
      const grid = make('table');
      grid.append(make('caption', 'Means at some steps'));
      const head = grid.createTHead().insertRow();
      for (const title of ['step', ...labels]) head.append(make('th', title, {scope: 'col'}));
      const body = grid.createTBody();
      for (const [step, ...values] of shown) {
        const row = body.insertRow();
        row.append(make('th', step, {scope: 'row'}));
        for (const value of values) row.append(make('td', value ? short(value[1]) : '', {className: 'number'}));
      }
      table.replaceChildren(grid);
    };

    const draw = () => {
      waiting = false;
      const list = sorted();
      if (list.length === 0) {
        readout.textContent = 'No points yet.';
        return;
      }
      if (readout.textContent === 'No points yet.') readout.textContent = '';
      if (graph) graph.updateOptions({file: list});
      else graph = new Dygraph(box, list, options());
      if (table.closest('details').open) fillTable(list);
    };
    const later = () => {
      if (waiting) return;
      waiting = true;
      setTimeout(() => requestAnimationFrame(draw), 100);
    };
    const anew = () => {
      graph?.destroy();
      graph = null;
      draw();
    };

    const fillLegend = () => legend.replaceChildren(...labels.map((label, i) => {
      const item = make('li'), name = make('label'), show = make('input', '', {type: 'checkbox', checked: true});
      const key = make('span', '', {className: 'key'});
      key.style.background = `var(--hue${hues[i]})`;
      show.onchange = () => graph?.setVisibility(i, show.checked);
      name.append(show, key, label);
      item.append(name);
      return item;
    }));

    table.closest('details').ontoggle = () => fillTable(sorted());
    for (const id of ['smooth', 'log-y', 'log-x']) {
      const field = control(id);
      if (field) field.onchange = anew;
    }
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', anew);
    box.tabIndex = 0;
    box.onkeydown = (event) => {
      const list = sorted(), moves = {ArrowLeft: -1, ArrowRight: 1, Home: -list.length, End: list.length};
      if (!graph || !(event.key in moves)) return;
      event.preventDefault();
      at = Math.min(Math.max((at < 0 ? list.length - 1 : at) + moves[event.key], 0), list.length - 1);
      graph.setSelection(at);
      read(list[at][0], labels.map((name, i) => ({name, yval: list[at][i + 1]?.[1] ?? NaN})));
    };

    return {
      take: (message) => {
        if (message.whole) {
          rows = new Map();
          const same = JSON.stringify([labels, hues]) === JSON.stringify([message.labels, message.hues]);
          [labels, hues] = [message.labels, message.hues];
          if (!same) {
            graph?.destroy();
            graph = null;
            fillLegend();
          }
        }
        for (const row of message.rows) rows.set(row[0], row.map((cell, i) => i > 0 && cell === null ? [null, null, null] : cell));
        later();
      },
    };
  };

  // Its legend sets styles as text, which the policy forbids. This page has its own.
  if (window.Dygraph) Dygraph.PLUGINS = Dygraph.PLUGINS.filter((plugin) => plugin !== Dygraph.Plugins.Legend);
  const box = one('#curves');
  const chart = box && window.Dygraph ? makeChart(box) : null;
  if (chart && box.dataset.points) {
    fetch(box.dataset.points).then((answer) => answer.json()).then(chart.take);
  }
  for (const form of all('#curve-controls')) {
    for (const choice of all('[name=key], [name=by]', form)) choice.onchange = () => form.requestSubmit();
    for (const scripted of all('.scripted', form)) scripted.hidden = false;
    one('button', form).hidden = true;
  }
  if (one('#drawing')) drawTable(one('#drawing'), one('#drawing ~ .scroll table'));
  all('[data-completes]').forEach(complete);
  load(document);
  if (document.body.dataset.events) follow(document.body.dataset.events);
})();
