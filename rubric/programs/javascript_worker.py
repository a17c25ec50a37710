"""
The process in which JavaScript runs: it reads a line of JSON for each program, and writes a line with its result.

It is started as a script, without the library, the environment and the packages of the process that starts it: see
`rubric.programs.javascript`. The engine has no files, no network and no modules; this process has no variables with
keys in it, may write to no file, and is killed where the engine cannot be interrupted (`Array.prototype.join` of a list
of two thousand million holes, for example).
"""

from __future__ import annotations

import contextlib
import json
import sys
import threading
import time
from typing import Any

_PRELUDE = """
(function () {
  const input = JSON.parse($input), {stringify} = JSON, finite = Number.isFinite;
  delete globalThis.$input;
  let lack = '';
  const quiet = () => undefined;
  globalThis.console = {};
  for (const name of input.quiet) globalThis.console[name] = quiet;
  for (const name of input.absent) {
    const parts = name.split('.'), key = parts.pop();
    const owner = parts.length ? Object.getOwnPropertyDescriptor(globalThis, parts[0])?.value : globalThis;
    if (!owner || key in owner) continue;
    Object.defineProperty(owner, key, {
      configurable: true,
      get() { lack = lack || name; throw new ReferenceError(name + ' is not defined'); },
      set(value) { Object.defineProperty(owner, key, {value, writable: true, configurable: true}); },
    });
  }
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
  const tailored = /^(az|el|hy|lt|tr)\\b/i;
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
"""

_MOST_JOBS = 100_000
_LONGEST_RESULT = 1_000_000
_STACK = 24 << 20
"""Bytes of the stack, for about as many calls within calls as Node allows: 10,000 of a small function."""


def _run(engine: Any, request: dict[str, Any]) -> dict[str, Any]:
    """Return the result of *request*: its value, its error, what it lacks, or the limit that it met."""
    context = engine.Context()
    context.set_memory_limit(request["memory"])
    context.set_max_stack_size(_STACK)
    context.set_time_limit(request["seconds"])
    try:
        context.set("$input", json.dumps(request["input"]))
        context.eval(_PRELUDE)
        for _ in range(_MOST_JOBS):
            if not context.execute_pending_job():
                break
        else:
            return {"limit": "time"}
        # A value of the engine is never asked for its JSON: that would run code of the program without a limit.
        found, limit = context.get("$result"), context.get("$limit")
    except Exception as error:  # noqa: BLE001 - the engine raises one kind for everything
        text = str(error)
        return {"limit": "time" if "interrupted" in text else "memory"}
    if isinstance(limit, str):
        return {"limit": limit}
    if not isinstance(found, str):
        return {"limit": "time"}  # a promise that nothing fulfils
    return {"said": found} if len(found) <= _LONGEST_RESULT else {"limit": "memory"}


def main() -> None:
    """Serve programs until the standard input ends, in a thread: only that can be given a larger stack."""
    threading.stack_size(_STACK + (8 << 20))
    serving = threading.Thread(target=_serve)
    serving.start()
    serving.join()


def _serve() -> None:
    sys.path.append(sys.argv[1])
    import quickjs  # noqa: PLC0415 - from the folder that the process was told of

    resource = _limited()
    for line in sys.stdin.buffer:
        request = json.loads(line)
        if resource is not None:
            # Where the engine cannot be interrupted, the system ends the process a second or two later.
            spent = int(time.process_time())
            _limit(resource, "RLIMIT_CPU", spent + int(request["seconds"]) + 2)
        sys.stdout.write(json.dumps(_run(quickjs, request)) + "\n")
        sys.stdout.flush()


def _limited() -> Any:
    """Take from this process what no program needs; return the module that did, None on Windows."""
    try:
        import resource  # noqa: PLC0415 - there is none on Windows
    except ImportError:
        return None
    for name, most in (("RLIMIT_CORE", 0), ("RLIMIT_FSIZE", 0), ("RLIMIT_NPROC", 0), ("RLIMIT_AS", 1 << 30)):
        _limit(resource, name, most)
    return resource


def _limit(resource: Any, name: str, most: int) -> None:
    """Set a limit that the system has and allows; where it does not, the time that the other process waits is one."""
    if hasattr(resource, name):
        kind = getattr(resource, name)
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(kind, (most, resource.getrlimit(kind)[1]))


if __name__ == "__main__":
    main()
