// Processes of this benchmark that are clients of the service: started, asked, and gone with it.
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { CAN_PIN, CLIENT_CORE, pin, SERVER_CORE } from '../pin.ts'
import { endWithUs } from '../server-process.ts'
import type { Order, Tally } from './attacker.ts'
import type { Watch } from './observer.ts'
import type { Sample } from './verdict.ts'

/** What a client may take beyond its time, on a machine where all cores are busy. */
const GRACE_MS = 30_000

export class Client {
  readonly child: ChildProcess

  constructor(script: 'attacker.ts' | 'observer.ts') {
    this.child = endWithUs(fork(join(import.meta.dirname, script)))
    // The observer goes before the service, and takes little. Beside the attacker it would wait for what the kernel does.
    if (CAN_PIN) pin(this.child.pid as number, script === 'observer.ts' ? SERVER_CORE : CLIENT_CORE)
  }

  tell(message: Order | Watch | 'go' | 'stop'): void {
    if (this.child.connected) this.child.send(message)
  }

  /** The next message; throws where none comes. */
  async hear<T>(withinMs: number): Promise<T> {
    const [message] = await once(this.child, 'message', { signal: AbortSignal.timeout(withinMs) })
    return message as T
  }

  async observe(watch: Watch): Promise<Sample> {
    const heard = this.hear<Sample>(watch.seconds * 1000 + 2 * watch.patienceMs + GRACE_MS)
    this.tell(watch)
    return heard
  }

  async prepare(order: Order): Promise<void> {
    const heard = this.hear(GRACE_MS)
    this.tell(order)
    await heard
  }

  /** Of an attacker: leaves at once, and tells how it was answered. */
  async leave(withinMs: number): Promise<Tally> {
    const heard = this.hear<Tally>(withinMs).catch(() => ({ 'no word of it': 1 }))
    this.tell('stop')
    const tally = await heard
    this.kill()
    return tally
  }

  kill(): void {
    this.child.kill('SIGKILL')
  }
}
