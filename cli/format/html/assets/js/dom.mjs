// Making elements.

export const element = (name, properties = {}, ...children) => {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
};

// An element at the end of `parent`.
export const add = (parent, name, properties, ...children) => parent.appendChild(element(name, properties, ...children));

// The same of SVG, which has attributes only.
export const addShape = (parent, name, attributes) => {
  const made = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const key in attributes) made.setAttribute(key, attributes[key]);
  return parent.appendChild(made);
};
