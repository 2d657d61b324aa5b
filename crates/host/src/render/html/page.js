'use strict';
// Filters, another reference, pictures to keep. Every judgement comes from the block of JSON: nothing is computed here but
// where to put it.
(() => {
  const judged = JSON.parse(document.getElementById('judged').textContent);
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const root = document.documentElement;
  const drawing = 'http://www.w3.org/2000/svg';

  const shape = (name, attributes, inner = []) => {
    const made = document.createElementNS(drawing, name);
    Object.entries(attributes).forEach(([key, value]) => made.setAttribute(key, value));
    made.append(...inner);
    return made;
  };
  const upright = (kind, x) => shape('line', { class: kind, x1: x + '%', x2: x + '%', y2: '100%' });

  // ------------------------------------------------------------ another reference

  const marked = ([, finding, at, from, to]) => shape('g', { class: 'f-' + finding }, [
    shape('line', { x1: from + '%', x2: to + '%', y1: '50%', y2: '50%' }),
    shape('use', { href: '#f-' + finding, x: at + '%', y: '50%' }),
  ]);

  const say = (cell, ratio, words) => {
    cell.textContent = ratio;
    cell.title = words;
  };

  const showRow = (row, view, mark) => {
    const plot = row.querySelector('svg.row');
    if (!plot) return;
    plot.replaceChildren(
      shape('rect', { class: 'band', x: view.band[0] + '%', width: view.band[1] + '%', height: '100%' }),
      ...view.ticks.map(([x]) => upright('g', x)), upright('one', view.one), ...(mark[1] ? [marked(mark)] : []));
    say(row.querySelector('[data-r]'), mark[5] || '–', mark[6]);
  };

  const showTable = (table, reference) => {
    const view = judged.panels[table.dataset.p]?.[reference];
    table.querySelector('svg.ticks').replaceChildren(...(view?.ticks ?? []).map(([x, label]) => shape('text', { x: x + '%', y: 12 }, [label])));
    if (!view) {
      all('svg.row', table).forEach(plot => plot.replaceChildren());
      all('[data-r]', table).forEach(cell => say(cell, '–', 'the reference has no figure here'));
      return;
    }
    all('tbody tr[data-t]', table).forEach(row => showRow(row, view, view.marks.find(mark => mark[0] == row.dataset.t)));
  };

  const showFigure = (cell, reference) => {
    const found = judged.panels[cell.dataset.r]?.[reference]?.ratios.find(entry => entry[0] == cell.dataset.t);
    say(cell, found?.[1] || '–', found?.[2] ?? '');
  };

  // ------------------------------------------------------------ the overview: colours, and rows in order

  const matrix = document.querySelector('table.matrix');
  const wordsOf = (number, reference, target) => {
    const view = judged.panels[number]?.[reference];
    return view?.marks?.find(mark => mark[0] == target)?.[6] ?? view?.ratios?.find(entry => entry[0] == target)?.[2] ?? '';
  };
  const showOverview = reference => all('td[data-o]', matrix).forEach(cell => {
    const target = cell.closest('tr').dataset.t;
    const found = judged.overview[cell.dataset.o]?.[reference]?.find(entry => entry[0] == target);
    const off = [...cell.classList].filter(name => name.startsWith('off-'));
    cell.className = ['n', found?.[2] ?? 'none', ...off].join(' ');
    cell.textContent = found?.[1] ?? '–';
    cell.dataset.v = found?.[3] ?? '';
    cell.title = [cell.dataset.f, wordsOf(cell.dataset.o, reference, target)].filter(text => text).join('; ');
  });
  let sorted = null;
  const sortBy = (number, descending) => {
    sorted = number === null ? null : [number, descending];
    const key = row => parseFloat(row.querySelector(`td[data-o="${number}"]`)?.dataset.v || Number.MAX_VALUE);
    const rows = all('tbody tr[data-t]', matrix).map((row, at) => [row, number === null ? at : key(row) * (descending ? -1 : 1)]);
    rows.sort((a, b) => (Math.abs(a[1]) === Number.MAX_VALUE) - (Math.abs(b[1]) === Number.MAX_VALUE) || a[1] - b[1]);
    const copy = matrix.querySelector('tr.copy');
    rows.forEach(([row]) => row.parentNode.append(row, ...(copy && row.dataset.t === copy.dataset.copyOf ? [copy] : [])));
    all('th[data-sort]', matrix).forEach(head => {
      head.removeAttribute('aria-sort');
      if (head.dataset.sort === String(number)) head.setAttribute('aria-sort', descending ? 'descending' : 'ascending');
    });
  };
  if (matrix) all('th[data-sort]', matrix).forEach(head => {
    const button = Object.assign(document.createElement('button'), { type: 'button', textContent: head.textContent, title: 'Sort by this column' });
    button.addEventListener('click', () => {
      sortBy(head.dataset.sort, head.getAttribute('aria-sort') === 'ascending');
      keep();
    });
    head.replaceChildren(button);
  });

  const compareWith = (reference, name) => {
    if (matrix) {
      showOverview(reference);
      if (sorted) sortBy(...sorted);
    }
    all('[data-copy-of]').forEach(row => { row.hidden = row.dataset.copyOf !== reference; });
    all('table.forest').filter(table => judged.panels[table.dataset.p]).forEach(table => showTable(table, reference));
    all('small[data-r]').filter(cell => judged.panels[cell.dataset.r]).forEach(cell => showFigure(cell, reference));
    all('[data-named]').forEach(place => { place.textContent = name; });
    const blocks = all('[data-reference]');
    if (blocks.some(block => block.dataset.reference === reference)) {
      blocks.forEach(block => { block.hidden = block.dataset.reference !== reference; });
    }
    document.getElementById('said').textContent = 'Compared with ' + name;
  };

  const reference = document.getElementById('reference');
  const compareAsChosen = () => compareWith(reference.value, reference.selectedOptions[0].textContent);
  reference.addEventListener('change', () => {
    compareAsChosen();
    keep();
  });

  // ------------------------------------------------------------ filters

  const boxes = all('[data-kind]');
  const filter = box => {
    const kind = box.dataset.kind;
    all('[data-' + kind + ']').filter(part => part.dataset[kind] === box.value)
      .forEach(part => part.classList.toggle('off-' + kind, !box.checked));
  };
  boxes.forEach(box => box.addEventListener('change', () => {
    filter(box);
    keep();
  }));

  // ------------------------------------------------------------ what is chosen stands in the address

  const planned = reference.value;
  const keep = () => {
    const chosen = new URLSearchParams();
    if (reference.value !== planned) chosen.set('reference', reference.selectedOptions[0].textContent);
    if (sorted) chosen.set('sort', sorted.map(Number).join('.'));
    boxes.filter(box => !box.checked).forEach(box => chosen.append('without', box.dataset.kind + ':' + box.value));
    history.replaceState(null, '', '#' + chosen);
  };
  const restore = () => {
    if (!location.hash.includes('=')) return;
    const chosen = new URLSearchParams(location.hash.slice(1));
    const option = [...reference.options].find(one => one.textContent === chosen.get('reference'));
    if (option) {
      reference.value = option.value;
      compareAsChosen();
    }
    const [column, descending] = (chosen.get('sort') ?? '').split('.');
    if (matrix && column && matrix.querySelector(`th[data-sort="${Number(column)}"]`)) sortBy(column, descending === '1');
    const without = chosen.getAll('without');
    boxes.filter(box => without.includes(box.dataset.kind + ':' + box.value)).forEach(box => {
      box.checked = false;
      filter(box);
    });
  };
  const lists = all('details.choices');
  const closeBut = kept => lists.filter(list => list !== kept).forEach(list => { list.open = false; });
  document.addEventListener('click', event => closeBut(event.target.closest('details.choices')));
  document.addEventListener('keydown', event => {
    const open = event.key === 'Escape' && lists.find(list => list.open);
    if (open) {
      open.open = false;
      open.querySelector('summary').focus();
    }
  });

  // What is wider than its place is scrolled with the keyboard too.
  const letScroll = () => all('.scroll').forEach(part => {
    const isWide = part.scrollWidth > part.clientWidth + 1;
    const given = { tabindex: '0', role: 'region', 'aria-label': part.dataset.label };
    Object.entries(given).forEach(([name, value]) => isWide ? part.setAttribute(name, value) : part.removeAttribute(name));
  });
  letScroll();
  addEventListener('resize', letScroll);
  document.addEventListener('toggle', letScroll, true);

  // ------------------------------------------------------------ dark and light

  const theme = document.getElementById('theme');
  const remember = value => { try { value ? localStorage.setItem('pickfs-theme', value) : 0; return localStorage.getItem('pickfs-theme'); } catch { return value; } };
  const isDark = () => (root.dataset.theme ?? (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light')) === 'dark';
  const dress = value => {
    if (value === 'dark' || value === 'light') root.dataset.theme = value;
    theme.textContent = isDark() ? 'Light' : 'Dark';
  };
  dress(remember());
  theme.addEventListener('click', () => dress(remember(isDark() ? 'light' : 'dark') ?? root.dataset.theme));

  // ------------------------------------------------------------ pictures to keep

  const sheet = document.querySelector('style').textContent;
  const alone = (width, height, title, parts) => {
    const name = shape('text', { class: 'title', x: 10, y: 20 }, [title]);
    const paper = shape('rect', { width: '100%', height: '100%', fill: '#fff' });
    const style = shape('style', {}, [sheet]);
    const picture = shape('svg', { class: 'chart picture', 'data-theme': 'light', viewBox: `0 0 ${width} ${height}`, width, height },
      [style, document.querySelector('.defs defs').cloneNode(true), paper, name, ...parts]);
    return new XMLSerializer().serializeToString(picture);
  };
  const keyOf = (targets, top) => targets.map((item, at) => {
    const mark = item.querySelector('.mark').cloneNode(true);
    Object.entries({ x: 10 + at % 3 * 150, y: top + Math.floor(at / 3) * 20 - 8, width: 16, height: 16 }).forEach(([k, v]) => mark.setAttribute(k, v));
    return [mark, shape('text', { x: 32 + at % 3 * 150, y: top + Math.floor(at / 3) * 20 + 4 }, [item.querySelector('span').textContent])];
  }).flat();
  const ofFigure = figure => {
    const chart = figure.querySelector('svg.chart');
    const [, , width, height] = chart.viewBox.baseVal ? [0, 0, chart.viewBox.baseVal.width, chart.viewBox.baseVal.height] : [];
    const targets = all('#controls ~ * .key[aria-label="Targets"]')[0]?.querySelectorAll('li:not(.off-t)') ?? [];
    const inner = shape('g', { transform: 'translate(0 30)' }, [...chart.cloneNode(true).childNodes]);
    const room = Math.ceil(targets.length / 3) * 20 + 16;
    return [chart.dataset.name, alone(width, height + 30 + room, figure.querySelector('figcaption').firstChild.textContent, [inner, ...keyOf([...targets], height + 46)])];
  };
  const ofTable = table => {
    const rows = all('tbody tr[data-t]:not(.off-t)', table).filter(row => row.querySelector('svg.row'));
    const placed = (element, x, y, width, height) => {
      const copy = element.cloneNode(true);
      Object.entries({ x, y, width, height }).forEach(([k, v]) => copy.setAttribute(k, v));
      return copy;
    };
    const parts = rows.flatMap((row, at) => [
      shape('text', { x: 10, y: 62 + at * 36, class: 'words' }, [row.querySelector('th span').textContent]),
      placed(row.querySelector('svg.row'), 220, 40 + at * 36, 340, 36),
      shape('text', { x: 575, y: 62 + at * 36, class: 'words' }, [row.querySelector('[data-r]').textContent]),
      shape('text', { x: 760, y: 62 + at * 36, class: 'words' }, [row.querySelector('.n b').textContent]),
    ]);
    const below = 40 + rows.length * 36;
    const ticks = placed(table.querySelector('svg.ticks'), 220, below, 340, 16);
    const about = 'relative to ' + (table.querySelector('[data-named]').textContent);
    const section = table.closest('section');
    const heading = section.getAttribute('aria-label') ?? section.querySelector('h2').textContent;
    const title = `${heading}: ${table.querySelector('caption b').textContent}, ${about}`;
    return ['ratios-' + table.dataset.p, alone(840, below + 30, title, [...parts, ticks])];
  };

  const save = (name, blob) => {
    const link = Object.assign(document.createElement('a'), { href: URL.createObjectURL(blob), download: name });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  };
  const asSvg = ([name, text]) => save(name + '.svg', new Blob([text], { type: 'image/svg+xml' }));
  const asPng = ([name, text]) => {
    const picture = new Image();
    picture.onload = () => {
      const canvas = Object.assign(document.createElement('canvas'), { width: picture.width * 2, height: picture.height * 2 });
      canvas.getContext('2d').drawImage(picture, 0, 0, canvas.width, canvas.height);
      canvas.toBlob(blob => save(name + '.png', blob));
    };
    picture.src = 'data:image/svg+xml;charset=utf-8,' + encodeURIComponent(text);
  };
  const offer = (place, picture, what) => {
    const button = (kind, keep) => {
      const made = Object.assign(document.createElement('button'), { type: 'button', textContent: kind });
      made.setAttribute('aria-label', `Save ${what} as ${kind}`);
      made.addEventListener('click', () => keep(picture()));
      return made;
    };
    const box = Object.assign(document.createElement('span'), { className: 'save' });
    box.append(button('SVG', asSvg), button('PNG', asPng));
    place.append(box);
  };
  // Where the browser keeps the clipboard from the page, the line is marked instead, to be copied by hand.
  const copied = (code, button) => {
    const say = words => { button.textContent = words; setTimeout(() => { button.textContent = 'Copy'; }, 2000); };
    const mark = () => { getSelection().selectAllChildren(code); say('Marked'); };
    navigator.clipboard ? navigator.clipboard.writeText(code.textContent).then(() => say('Copied'), mark) : mark();
  };
  all('.paste code').forEach(code => {
    const button = Object.assign(document.createElement('button'), { type: 'button', textContent: 'Copy' });
    button.setAttribute('aria-label', `Copy: ${code.textContent}`);
    button.addEventListener('click', () => copied(code, button));
    code.after(button);
  });
  all('figure').forEach(figure => offer(figure.querySelector('figcaption'), () => ofFigure(figure), figure.querySelector('figcaption').textContent));
  all('table.forest').forEach(table => offer(table.querySelector('caption'), () => ofTable(table), table.querySelector('caption b').textContent));

  // ------------------------------------------------------------ paper shows all

  let closed = [];
  addEventListener('beforeprint', () => {
    closed = all('main details:not([open]):not(.choices)');
    closed.forEach(part => { part.open = true; });
  });
  addEventListener('afterprint', () => closed.forEach(part => { part.open = false; }));

  document.getElementById('controls').hidden = false;
  restore();
})();
