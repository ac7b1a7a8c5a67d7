// Reloads the certificate, key and client roots of TLS when their files are replaced.
import type { Socket } from 'node:net'
import { isDeepStrictEqual } from 'node:util'
import { followFiles } from '../../runtime/follow-files.ts'
import { distrust } from '../auth/certificate-names.ts'
import { readTlsFiles, type TlsFiles, type TlsOptions } from './tls-files.ts'

interface SecureServer {
  setSecureContext(options: TlsOptions): void
  on(event: 'secureConnection', take: (socket: Socket) => void): unknown
}

interface Log {
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
}

/**
 * Loads the files now and whenever they change; returns a function that stops it. Connections stay open, but client
 * certificates on them count no more after a change of the roots. While the files are not valid, the server keeps what it has.
 */
export function reloadTls(files: TlsFiles, server: SecureServer, log: Log): () => void {
  let served: TlsOptions | undefined
  const connections = new Set<Socket>()
  server.on('secureConnection', (socket) => {
    connections.add(socket)
    socket.once('close', () => connections.delete(socket))
  })
  const paths = [files.cert, files.key, files.clientCa].filter((path) => path !== undefined)
  const following = followFiles(paths, {
    read: () => readTlsFiles(files),
    take({ options, certificate, warnings }, isRecovered) {
      if (isDeepStrictEqual(options, served) && !isRecovered) return
      // The context only replaces the roots; requestCert and rejectUnauthorized are fixed when the server is created.
      server.setSecureContext(options)
      if (served && served.ca !== options.ca) for (const socket of connections) distrust(socket)
      served = options
      log.info(certificate, 'TLS certificate loaded')
      for (const warning of warnings) log.warn({ warning }, 'the TLS files need attention')
    },
    refuse(problems) {
      for (const problem of problems)
        log.error({ problem }, 'the TLS files cannot be used: the earlier ones stay in use')
    },
  })
  // The files may have changed since the server was created: loading a large store takes long.
  following.readNow()
  return following.stop
}
