// The bar of links at the top of the page, one for each element with an id and a data-title, in the document's order.

import {element} from './dom.mjs';

// The section that is read: the last one that begins above `line`, or the first. `tops` are where the sections begin, from
// the top of the window. At the page's end it is the last one, however short that is.
export const currentSection = (tops, line, atEnd) =>
  atEnd ? tops.length - 1 : Math.max(0, tops.findLastIndex((top) => top <= line));

const BELOW_BAR = 80;  // pixels: a section is read when its beginning comes so near to the bar

export const startSections = () => {
  const sections = [...document.querySelectorAll('[id][data-title]')];
  if (sections.length < 2) return;
  const links = sections.map(({id, dataset}) => element('a', {href: '#' + encodeURIComponent(id)}, dataset.title));
  const bar = element('nav', {className: 'sections', ariaLabel: 'Sections of the page'}, ...links);
  const header = document.querySelector('body > header');
  if (header) header.after(bar); else document.body.prepend(bar);
  const root = document.documentElement;
  new ResizeObserver(() => root.style.setProperty('--nav', bar.offsetHeight + 'px')).observe(bar);
  root.style.setProperty('--nav', bar.offsetHeight + 'px');

  let jumped = null;  // the section of the last click, and where the page stood then: it is current until the page moves
  const update = () => {
    const tops = sections.map((section) => section.getBoundingClientRect().top);
    const atEnd = scrollY > 0 && scrollY + innerHeight >= root.scrollHeight - 2;
    const now = jumped && jumped.at === scrollY ? jumped.section
      : currentSection(tops, bar.getBoundingClientRect().bottom + BELOW_BAR, atEnd);
    links.forEach((link, k) => {
      if ((k === now) === (link.ariaCurrent === 'true')) return;
      link.ariaCurrent = k === now ? 'true' : null;
      if (k === now && bar.scrollWidth > bar.clientWidth) bar.scrollLeft = link.offsetLeft - bar.clientWidth / 3;
    });
  };
  const jump = () => {
    const section = sections.findIndex(({id}) => '#' + encodeURIComponent(id) === location.hash);
    if (section < 0) return;
    if (sections[section] instanceof HTMLDetailsElement) sections[section].open = true;
    sections[section].scrollIntoView();
    jumped = {section, at: scrollY};
    update();
  };
  bar.addEventListener('click', (event) => {  // a second click on the same link changes no address
    if (event.target.closest('a')) requestAnimationFrame(jump);
  });
  addEventListener('hashchange', jump);
  addEventListener('scroll', update, {passive: true});
  addEventListener('resize', update, {passive: true});
  update();
  jump();
};
