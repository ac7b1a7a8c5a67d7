// A service of our own with a made fleet on SQLite in a temporary folder; every cluster has a token of its own.
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { cluster, clusterDns, clusterId, clusterToken, writeFleet } from '../../bench/fleet.ts'
import { cpuSeconds, residentMegabytes, startService, stopTarget, TOKEN } from '../../bench/server-process.ts'
import { findPort } from '../../test/find-port.ts'
import { benchFleetInputs, type Endpoint } from './bench-fleet-inputs.ts'
import type { FleetSource } from './fleet-source.ts'
import { Oracle } from './oracle.ts'

export interface OwnFleetOptions {
  readonly clusters: number
  readonly tls: boolean
  readonly timeoutMs: number
}

export async function openOwnFleet({ clusters, tls, timeoutMs }: OwnFleetOptions): Promise<FleetSource> {
  const folder = mkdtempSync(join(tmpdir(), 'flux-resourceset-simulate-'))
  const remove = (): void => rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
  process.once('exit', remove)
  const database = join(folder, 'fleet.db')
  await writeFleet(database, clusters, true)
  const [port, adminPort] = await Promise.all([findPort(), findPort()])
  const certificate = tls ? await writeCertificate(folder) : undefined
  const service = await startService('service', `sqlite://${database}`, port, 'inherit', {
    ADMIN_LISTEN_ADDR: `127.0.0.1:${adminPort}`,
    ...certificate?.settings,
  })
  const numbers = new Map(Array.from({ length: clusters }, (_, n) => [clusterDns(n), n]))
  const expect = (dns: string, endpoint: string) =>
    benchFleetInputs(cluster(numbers.get(dns) ?? 0), endpoint as Endpoint)
  return {
    target: { host: '127.0.0.1', port, timeoutMs, tls: certificate && { ca: certificate.ca } },
    clusters: [...numbers].map(([dns, n]) => ({ id: clusterId(n), dns, token: clusterToken(n) })),
    token: TOKEN,
    oracle: new Oracle({ expect, isUnchanging: true }),
    cost() {
      if (!existsSync(`/proc/${service.child.pid}`)) return undefined
      const { now, peak } = residentMegabytes(service)
      return { cpuSeconds: cpuSeconds(service), rssMegabytes: now, peakRssMegabytes: peak }
    },
    async close() {
      await stopTarget(service)
      process.off('exit', remove)
      remove()
    },
  }
}

interface Certificate {
  readonly ca: string
  readonly settings: Readonly<Record<string, string>>
}

async function writeCertificate(folder: string): Promise<Certificate> {
  // Imported only here: making certificates takes a library that nothing else needs.
  const { createAuthority } = await import('../../test/certificates.ts')
  const authority = await createAuthority('simulation')
  const { cert, key } = await authority.issue({ dnsNames: ['localhost'], ipAddresses: ['127.0.0.1'] })
  const settings = { TLS_CERT_FILE: join(folder, 'cert.pem'), TLS_KEY_FILE: join(folder, 'key.pem') }
  writeFileSync(settings.TLS_CERT_FILE, cert)
  writeFileSync(settings.TLS_KEY_FILE, key, { mode: 0o600 })
  return { ca: authority.pem, settings }
}
