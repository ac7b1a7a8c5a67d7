// Connections, and the bytes that passed over them: counted when they close, as polls mostly take one each.
import type { Socket } from 'node:net'
import { Counter, type Registry } from 'prom-client'
import { addGauge } from '../gauge.ts'

export class Traffic {
  /** Connections that are open now. */
  open = 0
  #accepted = 0
  #received = 0
  #sent = 0

  constructor(registry: Registry) {
    addGauge(registry, 'flux_resourceset_connections', 'Connections that are open.', () => this.open)
    const counters = [
      ['flux_resourceset_connections_total', 'Connections that were accepted.', () => this.#accepted],
      [
        'flux_resourceset_received_bytes_total',
        'Bytes of requests, counted as connections close.',
        () => this.#received,
      ],
      [
        'flux_resourceset_sent_bytes_total',
        'Bytes of responses, counted as connections close.',
        () => this.#sent,
      ],
    ] as const
    for (const [name, help, read] of counters)
      new Counter({
        name,
        help,
        registers: [registry],
        collect() {
          this.reset()
          this.inc(read())
        },
      })
  }

  begin(): void {
    this.open++
    this.#accepted++
  }

  end({ bytesRead, bytesWritten }: Socket): void {
    this.open--
    this.#received += bytesRead
    this.#sent += bytesWritten
  }
}
