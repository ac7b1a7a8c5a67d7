// Keeps the test runner from following every promise, which is a sixth of what tests take. It does so to say which test an
// error belongs to that nobody has caught. Such an error still fails the run: by its file, where its test is not known.
const hooks = require('node:async_hooks')

const { createHook } = hooks
hooks.createHook = (callbacks) => createHook({ ...callbacks, trackPromises: false })
