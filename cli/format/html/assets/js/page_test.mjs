// What is small, and the script as a whole.
import assert from 'node:assert/strict';
import {readFileSync, readdirSync} from 'node:fs';
import test from 'node:test';
import {currentSection} from './sections.mjs';
import {otherTheme} from './theme.mjs';
import {beside} from './tooltip.mjs';

test('the section that is read is the last that begins above the line', () => {
  assert.equal(currentSection([300, 900, 1500], 120, false), 0);
  assert.equal(currentSection([-700, 100, 700], 120, false), 1);
  assert.equal(currentSection([-700, 100, 100], 120, false), 2);
  assert.equal(currentSection([-700, 100, 700], 120, true), 2);
});

test('the button is named after the theme that it brings', () => {
  assert.equal(otherTheme(undefined, false), 'dark');
  assert.equal(otherTheme(undefined, true), 'light');
  assert.equal(otherTheme('light', true), 'dark');
  assert.equal(otherTheme('dark', false), 'light');
});

test('a tooltip stays in the window', () => {
  assert.equal(beside(100, 200, 1000), 118);
  assert.equal(beside(900, 200, 1000), 682);
  assert.equal(beside(100, 900, 1000), 4);
});

test('no name is taken twice, so that the modules can stand in one script', () => {
  const names = new Map();
  for (const file of readdirSync(new URL('.', import.meta.url))) {
    if (!file.endsWith('.mjs') || file.endsWith('_test.mjs') || file === 'sample.mjs') continue;
    for (const [, name] of readFileSync(new URL(file, import.meta.url), 'utf8').matchAll(/^(?:export )?(?:const|class) (\w+)/gm)) {
      assert.ok(!names.has(name), `${name} is in ${file} and ${names.get(name)}`);
      names.set(name, file);
    }
  }
  assert.ok(names.size > 30);
});
