(function () {
  const input = JSON.parse($input), {stringify} = JSON, finite = Number.isFinite;
  delete globalThis.$input;
  let lack = '';
  const quiet = () => undefined;  // what is logged goes nowhere
  globalThis.console = Object.fromEntries([
    'log', 'warn', 'error', 'info', 'debug', 'trace', 'table', 'dir', 'dirxml', 'assert', 'clear', 'count', 'countReset',
    'group', 'groupCollapsed', 'groupEnd', 'time', 'timeEnd', 'timeLog', 'timeStamp', 'profile', 'profileEnd',
  ].map((name) => [name, quiet]));
  const leaveOut = (root, names, shown = '') => {
    for (const name of names) {
      const parts = name.split('.'), key = parts.pop();
      const owner = parts.length ? Object.getOwnPropertyDescriptor(root, parts[0])?.value : root;
      if (!owner || key in owner) continue;
      Object.defineProperty(owner, key, {
        configurable: true,
        get() { lack = lack || shown + name; throw new ReferenceError(shown + name + ' is not defined'); },
        set(value) { Object.defineProperty(owner, key, {value, writable: true, configurable: true}); },
      });
    }
  };
  leaveOut(globalThis, input.absent);
  // Without tables of locales the engine has a plain form of these, which is not what Node answers.
  const alike = /^[0-9a-z]*$/, locale = (kind, name, plain) => {
    const own = kind.prototype[name];
    Object.defineProperty(kind.prototype, name, {configurable: true, writable: true, value(...given) {
      if (plain && plain(this, ...given)) return own.call(this, ...given);
      lack = lack || 'Intl (' + name + ')';
      throw new ReferenceError('Intl is not defined');
    }});
  };
  locale(String, 'localeCompare', (one, other, ...options) => {
    const [a, b] = [String(one), String(other)];
    return !options.length && (a === b || (alike.test(a) && alike.test(b)));
  });
  const small = (one, ...options) => !options.length && Number.isInteger(+one) && Math.abs(one) < 1000;
  locale(Number, 'toLocaleString', small);
  for (const name of ['toLocaleString', 'toLocaleDateString', 'toLocaleTimeString']) locale(Date, name);
  locale(BigInt, 'toLocaleString');
  const tailored = /^(az|el|hy|lt|tr)\b/i;
  const root = (text, tag) => tag === undefined || typeof tag === 'string' && !tailored.test(tag);
  for (const name of ['toLocaleLowerCase', 'toLocaleUpperCase']) locale(String, name, root);
  globalThis.global = globalThis;
  const {data, node} = input, asks = [], answers = new Map(node ? node.answers : []);
  const [has, get] = [answers.has.bind(answers), answers.get.bind(answers)];
  // What is asked for the first time stops the program, whether or not it catches that: it is run again, answered.
  const ask = node && ((kind, path) => {
    const question = kind + ' ' + path;
    if (has(question)) return get(question);
    if (asks.length < 100) asks[asks.length] = [kind, path];
    throw new Error('the answer to ' + question + ' is awaited');
  });
  const plain = data && ((key, value) => typeof value === 'function' ? data.function : value);
  const say = (found) => { globalThis.$result = stringify(asks.length ? {asks} : lack ? {lack} : found, plain); };
  const failed = (error) => {
    const text = error instanceof Error ? error.name + ': ' + error.message : String(error);
    // An engine without memory for the error itself throws null.
    if (error === null || /^InternalError: out of memory/.test(text)) globalThis.$limit = 'memory';
    if (text === 'RangeError: Maximum call stack size exceeded') globalThis.$limit = 'stack';
    say(/could not load module/.test(text) ? {lack: 'import'} : {thrown: text.slice(0, 1000)});
  };
  const answered = (value) => {
    const type = value === null ? 'null' : typeof value;
    if (type === 'number' && !finite(value)) say({type: 'NaN'});
    else if (type === 'bigint') say({type: 'number', value: Number(value)});
    else if (type === 'undefined' || type === 'function' || type === 'symbol') say({type});
    else say({type, value});
  };
  try {
    const [output, context = {}] = input.arguments;
    if (context?.$unknown) {
      const names = context.$unknown;
      delete context.$unknown;
      leaveOut(context, names, 'context.');
    }
    let value;
    if (input.module) {
      const module = {exports: {}};
      const missing = (name) => { lack = lack || name; throw new ReferenceError(name + ' is not there'); };
      const names = ['module', 'exports', '$lack', '$ask', '$node'];
      new Function(...names, input.body)(module, module.exports, missing, ask, node);
      const whole = module.exports.default ?? module.exports;
      value = input.name ? module.exports[input.name] ?? whole[input.name] : whole;
      const given = typeof value === 'function' || Array.isArray(value) || data;
      if (!given) throw new TypeError('the file exports no function ' + input.name);
    } else {
      value = new Function('output', 'context', 'vars', input.body)(output, context, context.vars);
    }
    if (typeof value === 'function') value = value(...input.arguments);
    Promise.resolve(value).then(answered, failed).catch(failed);
  } catch (error) { failed(error); }
})();
