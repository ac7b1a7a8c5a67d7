// How the console is built, and served while it is worked on: `npm run dev:console` beside `make run`.
import { defineConfig } from 'vite'
import { NONCE_PLACEHOLDER } from '../src/http/console/console-files.ts'

const { CONSOLE_API = 'http://127.0.0.1:8080' } = process.env

export default defineConfig({
  root: import.meta.dirname,
  base: '/console/',
  html: { cspNonce: NONCE_PLACEHOLDER },
  build: {
    // Inlined files would be data: URLs, which the content security policy refuses for most.
    assetsInlineLimit: 0,
    emptyOutDir: true,
    reportCompressedSize: false,
    target: 'es2024',
    modulePreload: { polyfill: false },
    rolldownOptions: {
      // Libraries mark files for servers that render; there is none here.
      onwarn: (warning, warn) => warning.code === 'MODULE_LEVEL_DIRECTIVE' || warn(warning),
    },
  },
  server: {
    // Everything that is not the console is the API.
    proxy: { '^/(?!console)': CONSOLE_API, '^/console/settings.json': CONSOLE_API },
  },
})
