const $cache = new Map();
const $load = (path) => {
  if ($cache.has(path)) return $cache.get(path);
  const [links, es, body] = $files[path], module = {exports: {}}, own = {module, es};
  $cache.set(path, own);
  const named = (name) => {
    if (Object.hasOwn(links, name)) return $load(links[name]);
    const own = name.replace(/^node:/, '');
    if (Object.hasOwn($modules, own)) return {module: {exports: $modules[own]}, es: true};
    if ($ask) $ask('require', path + '\n' + name);
    return $lack('the module ' + name);
  };
  const pick = ({module, es}, key) => {
    if (key === '*') return es ? module.exports : {...module.exports, default: module.exports};
    return key === 'default' && !es ? module.exports : module.exports?.[key];
  };
  const $from = (name, key) => pick(named(name), key);
  const define = (target, key, get) => Object.defineProperty(target, key, {get, enumerable: true, configurable: true});
  const $scope = (all, names) => {
    all.forEach(named);
    const scope = Object.create(null);
    for (const [own, [name, key]] of Object.entries(names)) define(scope, own, () => $from(name, key));
    return scope;
  };
  const $export = (given) => { for (const key in given) define(module.exports, key, given[key]); };
  const $all = (name) => {
    for (const key of Object.keys(named(name).module.exports)) {
      if (key !== 'default' && !(key in module.exports)) define(module.exports, key, () => $from(name, key));
    }
  };
  const $import = async (name) => $from(String(name), '*');
  const filename = $node && $node.root + '/' + path, dirname = $node && $path.dirname(filename);
  Object.defineProperty($import, 'meta', {
    get: () => $node ? {url: $address(filename), filename, dirname} : $lack('import.meta'),
  });
  const require = (name) => named(name).module.exports;
  body.call(module.exports, module, module.exports, require, $scope, $export, $all, $from, $import, filename, dirname);
  return own;
};
