const {root, cwd, environ, whole} = $node;
const $strict = (name, members) => new Proxy(members, {get(held, key) {
  if (key in held || typeof key === 'symbol' || ['then', 'toJSON', '__esModule'].includes(key)) return held[key];
  return $lack(`${name}.${key}`);
}});
const $process = {env: whole ? environ : $strict('process.env', environ), cwd: () => cwd};
for (const name of ['argv', 'chdir', 'exit', 'loadEnvFile', 'stderr', 'stdin', 'stdout']) {
  Object.defineProperty($process, name, {get: () => $lack('process.' + name)});
}
globalThis.process = $process;
const $path = ((isAbsolute) => {
  const normalize = (path) => {
    const parts = [], full = isAbsolute(path), end = path.endsWith('/') ? '/' : '';
    for (const part of path.split('/')) {
      if (part === '..' && parts.length && parts[parts.length - 1] !== '..') parts.pop();
      else if (part && part !== '.' && !(part === '..' && full)) parts.push(part);
    }
    return (path.startsWith('/') ? '/' : '') + (parts.length ? parts.join('/') + end : full ? '' : '.' + end);
  };
  const bare = (path) => path.replace(/(.)\/+$/, '$1');
  const join = (...parts) => normalize(parts.filter((part) => part !== '').join('/') || '.');
  const resolve = (...parts) => {
    let path = '';
    for (const part of [cwd, ...parts]) if (part) path = isAbsolute(part) ? part : path + '/' + part;
    return bare(normalize(path));
  };
  const basename = (path, end = '') => {
    const name = bare(path).replace(/^.*\//s, '');
    return end && name !== end && name.endsWith(end) ? name.slice(0, -end.length) : name;
  };
  const dirname = (path) => {
    const at = bare(path).lastIndexOf('/');
    return at < 0 ? '.' : bare(path).slice(0, at).replace(/\/+$/, '') || '/';
  };
  const extname = (path) => /^(?:\.*[^.].*?)(\.[^.]*)$/s.exec(basename(path))?.[1] ?? '';
  const relative = (from, to) => {
    const [one, other] = [from, to].map((path) => resolve(path).split('/').filter(Boolean));
    let same = 0;
    while (same < one.length && one[same] === other[same]) same += 1;
    return [...one.slice(same).map(() => '..'), ...other.slice(same)].join('/');
  };
  const parse = (path) => {
    const base = basename(path), ext = extname(path), top = path.startsWith('/') ? '/' : '';
    return {root: top, dir: /.\//s.test(path) || top ? dirname(path) : '', base, ext, name: basename(base, ext)};
  };
  const members = {isAbsolute, normalize, join, resolve, basename, dirname, extname, relative, parse};
  const own = $strict('path', Object.assign(members, {sep: '/', delimiter: ':'}));
  members.posix = members.default = own;
  return own;
})((path) => /^(?:[A-Za-z]:)?\//.test(path));
const $address = (path) => 'file://' + path.split('/').map(encodeURIComponent).join('/');
globalThis.URL = class URL {
  constructor(given, base = '') {
    const [, folder] = /^file:\/\/(\/.*\/|\/)[^/]*$/s.exec(String(base)) ?? [], text = String(given);
    if (/^file:\/\/\//.test(text)) this.pathname = text.slice(7);
    else if (folder && !/^(?:[a-z][a-z+.-]*:|\/\/)|[?#]/i.test(text)) {
      this.pathname = $path.normalize(text.startsWith('/') ? text : folder + text);
    } else $lack('URL');
    this.protocol = 'file:';
    this.href = 'file://' + this.pathname;
  }
  toString() { return this.href; }
  toJSON() { return this.href; }
};
const $URL = URL, $url = $strict('url', {URL, fileURLToPath: (url) => decodeURIComponent(new $URL(url).pathname)});
const $fs = (() => {
  const why = {ENOENT: 'no such file or directory', ENOTDIR: 'not a directory'};
  why.EISDIR = 'illegal operation on a directory';
  const asked = (kind, call, given) => {
    if (typeof given !== 'string' && !(given instanceof $URL)) {
      throw new TypeError('The "path" argument must be a text or a URL');
    }
    const path = $path.resolve(typeof given === 'string' ? given : $url.fileURLToPath(given));
    const [code, value] = $ask(kind, path);
    if (code) throw Object.assign(new Error(`${code}: ${why[code]}, ${call} '${given}'`), {code, path, syscall: call});
    return value;
  };
  const utf8 = (name, text) => /^utf-?8$/i.test(name) ? text : $lack(`the encoding ${name}`);
  const stats = ([kind, size], more) => $strict('Stats', {
    isFile: () => kind === 'file', isDirectory: () => kind === 'folder', isSymbolicLink: () => kind === 'link', ...more,
    size,
  });
  const members = {
    readFileSync(path, options) {
      const text = asked('read', 'open', path), name = typeof options === 'string' ? options : options?.encoding;
      return name ? utf8(name, text) : $strict('Buffer', {toString: (name = 'utf8') => utf8(name, text)});
    },
    existsSync(path) {
      try { return Boolean(asked('stat', 'stat', path)); } catch (error) {
        if (error.code || error instanceof TypeError) return false;
        throw error;
      }
    },
    statSync(path, options) {
      if (options?.throwIfNoEntry === false && !members.existsSync(path)) return undefined;
      return stats(asked('stat', 'stat', path));
    },
    readdirSync(path, options) {
      if (options?.recursive) $lack('fs.readdirSync with recursive');
      const found = asked('list', 'scandir', path);
      if (!options?.withFileTypes) return found.map(([name]) => name);
      return found.map(([name, kind]) => stats([kind], {name, path: String(path), parentPath: String(path)}));
    },
  };
  const later = (name) => async (...given) => members[name](...given);
  const promises = {readFile: later('readFileSync'), readdir: later('readdirSync'), stat: later('statSync')};
  promises.default = members.promises = $strict('fs.promises', promises);
  members.default = $strict('fs', members);
  return members.default;
})();
$url.default = $url;
const $modules = {fs: $fs, 'fs/promises': $fs.promises, path: $path, 'path/posix': $path, url: $url};
