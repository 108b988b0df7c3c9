// A table as the page's JSON gives it (page_data.h): columns of values, and what links rows to runs, groups and marks.
import {exponent} from './number.mjs';

// The text that base 64 of a zlib stream (RFC 1950) holds: so a long table is written.
export const inflate = async (base64) => {
  const packed = atob(base64), bytes = new Uint8Array(packed.length);
  for (let i = 0; i < packed.length; i++) bytes[i] = packed.charCodeAt(i);
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate'))).text();
};

const readColumn = (given) => {
  const column = {unit: '', scale: 1, additive: false, ...given};
  let most = 0;
  if (column.kind === 'unit') for (const value of column.values) most = Math.max(most, Math.abs(value));
  return Object.assign(column, {exponent: exponent(most * column.scale)});
};

// Completes a table of the page's JSON: what is optional there is always here.
//   value(column, i)  what stands in row i: a text, number or truth value, or null
//   name(i)           what row i is called
//   memberOf[i]       the row of the group that row i is in, or -1; members: of each group's row its members
//   share, facet      the columns that the slider and the check boxes filter by, or undefined
export const readTable = (given) => {
  const columns = given.columns.map(readColumn);
  const byName = Object.fromEntries(columns.map((column) => [column.name, column]));
  const value = (column, i) => column.words ? column.words[column.values[i]] : column.values[i];
  const count = given.rows, groups = given.groups;
  const memberOf = groups ? groups.of : new Array(count).fill(-1);
  const members = new Map();
  memberOf.forEach((group, i) => {
    if (group < 0) return;
    if (members.has(group)) members.get(group).push(i); else members.set(group, [i]);
  });
  const groupName = (i) => value(byName[groups.name], i) + ' x' + value(byName[groups.size], i);
  const naming = (given.names || columns.slice(0, 1).map((column) => column.name)).map((name) => byName[name]).filter(Boolean);
  const ownName = (i) => {
    for (const column of naming) if (value(column, i)) return String(value(column, i));
    return given.nameless || '';
  };
  return {
    id: given.id, heading: given.heading, find: given.find || '', count, columns, byName, value, memberOf, members, naming,
    nameless: given.nameless || '', groupTitle: groups ? groups.title : '', pictures: given.pictures || [],
    runs: given.runs || [''], runOf: given.run_of || new Array(count).fill(0),
    share: given.share && byName[given.share.column], openingShare: given.share ? given.share.opening : 100,
    shareOf: given.share ? given.share.of : '', prefix: byName[given.prefix],
    facet: given.facet && byName[given.facet.column], icons: given.facet && given.facet.icons || {},
    iconRadius: given.facet ? given.facet.radius : 1, inView: byName[given.in_view], spare: byName[given.spare],
    path: byName[given.path], hidden: byName[given.hidden],
    name: (i) => members.has(i) ? groupName(i) : ownName(i)};
};

// The facet's value in row i, '' where there is none.
export const facetOf = (table, i) => table.facet ? table.value(table.facet, i) : '';

// What a tooltip calls row i.
export const titleOf = (table, i) => {
  const [first] = table.naming, prefixed = table.prefix && first !== table.prefix && table.value(first, i);
  const prefix = prefixed ? table.value(table.prefix, i) : '';
  const facet = table.facet !== first ? facetOf(table, i) : '';
  return [[prefix, table.name(i)].filter(Boolean).join(' '), facet].filter(Boolean).join(', ');
};

// `rows` of the table as CSV (RFC 4180), with every digit that the page has.
export const csvText = (table, rows) => {
  const quoted = (text) => /[",\r\n]/.test(text) ? '"' + text.replaceAll('"', '""') + '"' : text;
  const cell = (value) => value === null ? '' : quoted(String(value));
  const lines = rows.map((i) => table.columns.map((column) => cell(table.value(column, i))).join(','));
  return [table.columns.map((column) => column.name).join(','), ...lines].join('\n') + '\n';
};
