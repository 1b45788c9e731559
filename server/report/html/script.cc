#include "server/report/html/style.h"

namespace ablate::html {

absl::string_view PageScript() {
  return R"js(
(() => {
  const all = (query, root = document) => [...root.querySelectorAll(query)];
  const button = () => Object.assign(document.createElement('button'), {type: 'button'});

  for (const box of all('pre, code.copy')) {
    const copy = button();
    copy.className = 'copier';
    copy.textContent = 'Copy';
    copy.onclick = async () => {
      let done = 'Copied';
      try {
        await navigator.clipboard.writeText(box.textContent);
      } catch {
        getSelection().selectAllChildren(box);
        done = 'Selected';
      }
      copy.textContent = done;
      setTimeout(() => { copy.textContent = 'Copy'; }, 1500);
    };
    box.after(copy);
  }

  const number = (cell) => {
    const text = cell.textContent.replace(/\u2212/g, '-').replace(/[+,<\u00d7\u2248]/g, '');
    return parseFloat(text);
  };
  for (const table of all('table.main')) {
    const heads = all('thead tr:last-child th', table), body = table.tBodies[0];
    heads.forEach((head, column) => {
      const sort = button();
      sort.append(...head.childNodes);
      head.append(sort);
      sort.onclick = () => {
        const up = head.getAttribute('aria-sort') !== 'ascending';
        for (const other of heads) other.removeAttribute('aria-sort');
        head.setAttribute('aria-sort', up ? 'ascending' : 'descending');
        const rows = [...body.rows].map((row) => [number(row.cells[column + 1]), row]);
        rows.sort(([a], [b]) => isNaN(a) - isNaN(b) || (up ? a - b : b - a));
        for (const [, row] of rows) body.append(row);
      };
    });
  }

  for (const figure of all('figure')) {
    const svg = figure.querySelector('svg[data-steps]'), csv = figure.querySelector('a.file');
    if (!svg || !csv) continue;
    const [left, right, low, high] = svg.dataset.steps.split(' ').map(Number);
    const text = decodeURIComponent(csv.href.slice(csv.href.indexOf(',') + 1));
    if (!text.startsWith('panel,setting,seed,step,value')) continue;
    const curves = new Map();
    for (const line of text.split('\n').slice(1)) {
      const fields = line.match(/("(?:[^"]|"")*"|[^,]*)(?:,|$)/g) || [];
      const [, setting, seed, step, value] = fields.map((field) => field.replace(/,$/, ''));
      if (seed !== '' || !value) continue;
      const name = setting.replace(/^"|"$/g, '').replace(/""/g, '"');
      if (!curves.has(name)) curves.set(name, []);
      curves.get(name).push([+step, +value]);
    }
    const out = document.createElement('p');
    out.className = 'readout';
    out.role = 'status';
    out.textContent = 'Point at the figure, or use \u2190 and \u2192, to read values.';
    figure.querySelector('.picture').after(out);
    const steps = [...new Set([...curves.values()].flat().map(([at]) => at))].sort((a, b) => a - b);
    let step = high;
    const show = () => {
      const near = (points) => points.reduce((best, point) =>
        Math.abs(point[0] - step) < Math.abs(best[0] - step) ? point : best);
      out.textContent = [...curves].map(([name, points]) => {
        const [at, value] = near(points);
        return `${name} ${value.toPrecision(4).replace('-', '\u2212')} at ${at}`;
      }).join(' \u00b7 ');
    };
    svg.onpointermove = (event) => {
      const box = svg.getBoundingClientRect();
      const x = (event.clientX - box.left) / box.width * svg.viewBox.baseVal.width;
      step = low + (x - left) / (right - left) * (high - low);
      show();
    };
    svg.tabIndex = 0;
    svg.onfocus = show;
    svg.onkeydown = ({key}) => {
      const before = steps.filter((at) => at < step), after = steps.filter((at) => at > step);
      step = {ArrowLeft: before.pop(), ArrowRight: after[0], Home: low, End: high}[key] ?? step;
      show();
    };
  }

  addEventListener('beforeprint', () => { for (const fold of all('details')) fold.open = true; });
})();
)js";
}

}  // namespace ablate::html
