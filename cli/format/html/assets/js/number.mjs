// How numbers and names read in the page's tables and tooltips.

// Characters that are invisible or turn the direction of the text around them are shown by their number.
export const visible = (text) => text.replace(
    /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g,
    (c) => '<U+' + c.codePointAt(0).toString(16).toUpperCase().padStart(4, '0') + '>');

const PREFIX = {'-12': 'p', '-9': 'n', '-6': 'u', '-3': 'm', 0: '', 3: 'k', 6: 'M', 9: 'G', 12: 'T', 15: 'P', 18: 'E'};

// `value` with `count` significant digits.
export const digits = (value, count) => {
  if (value === 0) return '0';
  const size = Math.abs(value);
  if (size < 1e-3) return value.toExponential(2);
  return value.toFixed(Math.max(0, Math.min(6, count - 1 - Math.floor(Math.log10(size) + 1e-12))));
};

// A whole number with narrow spaces between its thousands.
export const grouped = (value) => String(value).replace(/\B(?=(\d{3})+$)/g, '\u202f');

// The exponent of the metric prefix that suits `value`.
export const exponent = (value) =>
  value === 0 ? 0 : Math.max(-12, Math.min(18, 3 * Math.floor(Math.log10(Math.abs(value)) / 3 + 1e-9)));

// A column's unit, with the one prefix that all its numbers have in the table, so that their lengths compare.
export const unitLabel = (column) => column.kind === 'unit' ? PREFIX[column.exponent] + column.unit : column.unit;

const scaled = (column, value, power, count) => digits(value * column.scale / 10 ** power, count);
const yesOrNo = (value) => value ? 'yes' : 'no';

// A value with a prefix and unit of its own, for the tooltip.
export const fullText = (column, value) => {
  if (typeof value === 'boolean') return yesOrNo(value);
  if (column.kind === 'text') return visible(value);
  if (column.kind === 'count') return grouped(value);
  if (column.kind === 'share') return digits(value * 100, 3) + ' %';
  if (column.kind === 'plain') return digits(value, 4) + (column.unit ? ' ' + column.unit : '');
  const power = exponent(value * column.scale);
  return scaled(column, value, power, 4) + ' ' + PREFIX[power] + column.unit;
};

const SHORT = {forward: 'fwd', backward: 'bwd', optimizer: 'opt', recompute: 'again', communication: 'comm'};

// A value in the table, whose head has the unit. On a phone (`narrow`) numbers have three digits and phases short names.
export const cellText = (column, value, narrow = false) => {
  if (value === null) return '';
  if (typeof value === 'boolean') return yesOrNo(value);
  if (column.kind === 'text') return narrow && SHORT[value] || visible(value);
  if (column.kind === 'count') return grouped(value);
  if (value === 0 && !column.additive) return '';  // not known
  if (column.kind === 'share') return digits(value * 100, 3);
  const count = narrow ? 3 : 4;
  return column.kind === 'plain' ? digits(value, count) : scaled(column, value, column.exponent, count);
};
