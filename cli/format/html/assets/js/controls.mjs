// What a user filters a table with: slider, check boxes, search, and what is left of the rows. Only what the table has is
// there: few rows need no search, and a table without shares of time has no slider.
import {csvText} from './data.mjs';
import {add, addShape, element} from './dom.mjs';
import {digits, grouped} from './number.mjs';

const FEW = 8;  // rows that are found without a search

// How many rows are shown, in words.
export const countText = (table, {shown, all, share}) =>
  grouped(shown) + ' of ' + grouped(all) + ' rows' +
  (table.shareOf ? ', ' + digits(100 * share, 3) + ' % of ' + table.shareOf : '');

// The values of the facet in the order of their icons, which is the order of a step; others come last.
export const facetOrder = (table) => {
  const known = Object.keys(table.icons), place = (word) => known.includes(word) && word ? known.indexOf(word) : known.length;
  return [...table.facet.words].sort((a, b) => place(a) - place(b));
};

const addViews = (bar) => {
  const group = add(bar, 'span', {className: 'segmented', role: 'group', ariaLabel: 'Picture'});
  for (const [view, title] of [['roofline', 'Roofline'], ['time', 'Time view']]) {
    add(group, 'button', {type: 'button', ariaPressed: String(view === 'roofline')}, title).dataset.view = view;
  }
};

const addSlider = (bar, table, state, changed) => {
  const label = add(bar, 'label', {className: 'slider'}, 'Rows that make up the top ');
  const range = add(label, 'input', {className: 'share', type: 'range', min: 50, max: 100, step: 0.5, value: state.share});
  const output = add(label, 'output', {className: 'share-text'});
  label.append(' of time');
  const show = () => { output.textContent = state.share + ' %'; };
  range.oninput = () => {
    state.share = +range.value;
    show();
    changed();
  };
  show();
};

const addFacets = (bar, table, state, changed) => {
  const group = add(bar, 'span', {className: 'facets', role: 'group', ariaLabel: table.facet.title});
  for (const word of facetOrder(table)) {
    const label = add(group, 'label'), box = add(label, 'input', {type: 'checkbox', checked: true});
    box.onchange = () => {
      if (box.checked) state.facets.add(word); else state.facets.delete(word);
      changed();
    };
    const icon = table.icons[word] || table.icons[''];
    if (icon) addShape(addShape(label, 'svg', {viewBox: '-7 -7 14 14'}), 'path', {d: icon});
    label.append(word || 'no ' + table.facet.title.toLowerCase());
  }
};

const download = (name, text) => {
  const address = URL.createObjectURL(new Blob([text], {type: 'text/csv'})), link = element('a', {href: address, download: name});
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 60000);
};

// Fills `bar` with the filters, and `head` with what stands right above the table. `changed` is called after each
// change of the filter's state, `rows` gives the rows for the download.
export const createControls = (table, filter, pictures, bar, head, changed, rows) => {
  const {state} = filter;
  if (pictures.kinds.includes('roofline') && pictures.kinds.includes('time')) addViews(bar);
  if (table.share) addSlider(bar, table, state, changed);
  if (table.facet && table.facet.words.length > 1) addFacets(bar, table, state, changed);
  if (table.members.size) {
    const label = add(bar, 'label'), box = add(label, 'input', {type: 'checkbox', className: 'grouped', checked: true});
    label.append(' ' + table.groupTitle);
    box.onchange = () => {
      state.grouped = box.checked;
      state.open.clear();
      changed();
    };
  }
  if (table.count > FEW || table.share) {
    const label = add(bar, 'label', {}, 'Find ');
    const search = add(label, 'input', {type: 'search', className: 'search', placeholder: table.find, spellcheck: false});
    search.oninput = () => {
      state.search = search.value;
      changed();
    };
  }
  const shown = add(bar, 'span', {className: 'shown', role: 'status'});
  if (head !== bar) add(head, 'span', {className: 'muted'}, 'Click a head to sort, a row to find its point.');
  const save = () => download('rfinject-' + table.id + '.csv', csvText(table, rows()));
  add(head, 'button', {type: 'button', className: 'csv', onclick: save}, 'Download CSV');
  return {show: (arranged) => { shown.textContent = countText(table, arranged); }};
};
