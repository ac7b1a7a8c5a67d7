#!/usr/bin/env -S node --max-semi-space-size=4 --expose-gc --disable-warning=ExperimentalWarning
// The service. A checkout runs its sources, the package what they were built to.
import { existsSync } from 'node:fs'

const source = new URL('../src/main.ts', import.meta.url)
await import(existsSync(source) ? source.href : '../dist/main.js')
