// A thread of its own that polls at a steady rate until it is told to stop, then tells how long each poll took.
import { constants, setPriority } from 'node:os'
import { parentPort, workerData } from 'node:worker_threads'
import { runSteadily, type SteadyLoad } from './load.ts'

// Where all cores are busy, whoever measures would wait for one itself; where it may not go first, figures include that.
try {
  setPriority(0, constants.priority.PRIORITY_HIGHEST)
} catch {
  console.error('polls are measured without priority over the server')
}

const stopped = new Promise<void>((resolve) => parentPort?.once('message', () => resolve()))
parentPort?.postMessage(await runSteadily(workerData as SteadyLoad, stopped))
