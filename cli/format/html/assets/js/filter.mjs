// Which rows of a table are shown, and in which order. Nothing here touches the document.
import {facetOf} from './data.mjs';

// For each row the share of its run's time in longer rows, of those that `counts`. It does not depend on what else is
// filtered, so the slider means the same whatever the other filters do. Several runs are ranked each for itself.
export const sharesBefore = (table, counts) => {
  const share = table.share.values, before = new Float64Array(table.count);
  const rows = Array.from(before.keys()).filter(counts).sort((a, b) => share[b] - share[a]);
  const sums = new Float64Array(table.runs.length);
  for (const i of rows) {
    before[i] = sums[table.runOf[i]];
    sums[table.runOf[i]] += share[i];
  }
  return before;
};

// All rows by a column; rows that are equal in it keep their order. Without a column the order is the table's own.
export const sortedRows = (table, column, down) => {
  const rows = Array.from({length: table.count}, (_, i) => i);
  if (!column) return rows;
  let rank = column.values;
  if (column.words) {  // words are compared once, not once a row
    const place = [];
    const words = column.words.map((word, at) => [word, at]).sort(([a], [b]) => a < b ? -1 : a > b ? 1 : 0);
    words.forEach(([, at], k) => { place[at] = k; });
    rank = column.values.map((at) => place[at]);
  }
  const of = (i) => rank[i] === null ? -Infinity : rank[i], sign = down ? -1 : 1;
  return rows.sort((a, b) => of(a) === of(b) ? a - b : sign * (of(a) < of(b) ? -1 : 1));
};

// What the user has chosen (`state`), and what that leaves (`arrange`).
//   state.share    percent: rows that make up the top so much of the time
//   state.facets   those values of the facet that are shown
//   state.search   what a row's texts must contain
//   state.sort, state.down   see sortedRows
//   state.grouped  whether groups stand for their members; state.open: the groups that are open
export const createFilter = (table) => {
  const {count, memberOf, members} = table;
  const state = {share: table.openingShare, facets: new Set(table.facet ? table.facet.words : ['']), search: '',
                 sort: table.share, down: true, grouped: members.size > 0, open: new Set()};
  const nothing = new Float64Array(count);
  const before = table.share ? sharesBefore(table, (i) => !members.has(i)) : nothing;
  const beforeGrouped = table.share && members.size ? sharesBefore(table, (i) => memberOf[i] < 0) : before;
  const texts = table.columns.filter((column) => column.kind === 'text' && column !== table.facet);
  let haystack = null, sorted = null, sortedBy = '';

  // The rows in order, with the members of open groups below them; which rows have their marks in the pictures (those of
  // an open group's members stand for the group's); how many of how many top rows are shown, and their share of the time.
  const arrange = () => {
    const by = (state.sort ? state.sort.name : '') + state.down;
    if (by !== sortedBy) sorted = sortedRows(table, state.sort, state.down);
    sortedBy = by;
    const needle = state.search.trim().toLowerCase();
    if (needle && !haystack) {
      haystack = Array.from({length: count}, (_, i) => texts.map((column) => table.value(column, i)).join('\n').toLowerCase());
    }
    const grouped = state.grouped && !needle;  // a search for a layer finds that layer
    const limit = state.share >= 100 ? Infinity : state.share / 100, longer = grouped ? beforeGrouped : before;
    const opened = new Map(grouped ? [...state.open].map((group) => [group, []]) : []);
    if (opened.size) for (const i of sorted) if (opened.has(memberOf[i])) opened.get(memberOf[i]).push(i);
    const result = {order: [], marked: new Uint8Array(count), shown: 0, all: 0, share: 0, grouped};
    for (const i of sorted) {
      if (grouped ? memberOf[i] >= 0 : members.has(i)) continue;
      result.all++;
      if (!(longer[i] < limit && state.facets.has(facetOf(table, i)) && (!needle || haystack[i].includes(needle)))) continue;
      result.order.push(i);
      result.shown++;
      result.marked[i] = opened.has(i) ? 0 : 1;
      if (table.share) result.share += table.share.values[i] / table.runs.length;
      for (const member of opened.get(i) || []) {
        result.order.push(member);
        result.marked[member] = 1;
      }
    }
    return result;
  };
  // Of the rows shown those that are no group: for a closed group its members.
  const leaves = ({order}) => order.flatMap((i) => !members.has(i) ? [i] : state.open.has(i) ? [] : members.get(i));
  // The sum of an additive column over the rows shown; the group's row counts its members, so that they do not.
  const sum = (column, {order, grouped}) => {
    let all = 0;
    for (const i of order) if (!grouped || memberOf[i] < 0) all += column.values[i];
    return all;
  };
  return {state, arrange, leaves, sum};
};
