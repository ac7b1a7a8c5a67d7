// What a poll is measured beside: a bare node:http server, and nginx with the same answers as files.
import { spawn, spawnSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import { endWithUs, startTarget, type Target } from '../server-process.ts'
import type { Poll } from './fleets.ts'

export interface TlsFiles {
  readonly cert: string
  readonly key: string
}

/** Sends the bytes of one answer to every request, on a plain port and on one with TLS. */
export function startBare(
  folder: string,
  answer: Buffer,
  port: number,
  tlsPort: number,
  { cert, key }: TlsFiles,
): Promise<Target> {
  const file = join(folder, 'answer.json')
  writeFileSync(file, answer)
  return startTarget(
    'node:http',
    'bare-server.ts',
    [file, String(port), String(tlsPort), cert, key],
    port,
    {},
  )
}

/** Why nginx cannot be measured; undefined when it can. */
export function findNginx(): string | undefined {
  const { status, stderr } = spawnSync('nginx', ['-V'], { encoding: 'utf8' })
  if (status !== 0) return 'nginx is not installed (on Debian: apt-get install nginx)'
  for (const module of ['http_gzip_static_module', 'http_ssl_module'])
    if (!stderr.includes(module)) return `nginx was built without ${module}`
  return undefined
}

export interface NginxPorts {
  /** A connection for each poll, plain and with TLS; and kept ones. */
  readonly fresh: number
  readonly tls: number
  readonly kept: number
}

/** One worker that serves each answer as a compressed file, to its cluster's token alone. */
export function startNginx(
  folder: string,
  polls: readonly Poll[],
  answers: readonly Buffer[],
  ports: NginxPorts,
  tls: TlsFiles,
): Promise<Target> {
  const root = join(folder, 'nginx')
  for (const [i, { path }] of polls.entries()) {
    const file = join(root, path)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, answers[i] as Buffer)
    writeFileSync(`${file}.gz`, gzipSync(answers[i] as Buffer, { level: 9 }))
  }
  const tokens = polls.map(({ token, dns }) => `"Bearer ${token}" ${dns};`)
  const served = `
    location ~ "^/api/v2/flux/clusters/(?<dns>[^/]+)/[^/]+$" {
      if ($granted != $dns) { return 401; }
    }`
  return runNginx(
    'nginx',
    folder,
    `
  default_type application/json;
  root ${root};
  sendfile on;
  tcp_nopush on;
  gzip_static on;
  gzip_vary on;
  add_header Cache-Control no-store;
  map_hash_max_size ${4 * tokens.length};
  map_hash_bucket_size 128;
  map $http_authorization $granted { default ""; ${tokens.join('\n')} }
  server { listen 127.0.0.1:${ports.fresh}; keepalive_timeout 0; ${served} }
  server { listen 127.0.0.1:${ports.kept}; keepalive_timeout 60; keepalive_requests 1000000; ${served} }
  server { ${listenWithTls(ports.tls, tls)} ${served} }`,
    ports.kept,
  )
}

/** One worker that ends TLS, and hands polls on to a server over kept connections. */
export function startProxy(folder: string, upstream: number, port: number, tls: TlsFiles): Promise<Target> {
  return runNginx(
    'proxy',
    folder,
    `
  upstream served { server 127.0.0.1:${upstream}; keepalive 64; keepalive_requests 1000000; }
  server {
    ${listenWithTls(port, tls)}
    location / {
      proxy_pass http://served;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
    }
  }`,
    port,
  )
}

function listenWithTls(port: number, { cert, key }: TlsFiles): string {
  return `
    listen 127.0.0.1:${port} ssl;
    keepalive_timeout 0;
    ssl_certificate ${cert};
    ssl_certificate_key ${key};
    ssl_protocols TLSv1.3;`
}

async function runNginx(name: string, folder: string, http: string, port: number): Promise<Target> {
  const config = join(folder, `${name}.conf`)
  const kinds = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
  writeFileSync(
    config,
    `daemon off;
master_process off;
pid ${folder}/${name}.pid;
error_log stderr crit;
events { worker_connections 1024; }
http {
  access_log off;
  ${kinds.map((kind) => `${kind}_temp_path ${folder}/${name}-${kind};`).join(' ')}
  ${http}
}
`,
  )
  const started = performance.now()
  const child = endWithUs(
    spawn('nginx', ['-c', config, '-p', folder], { stdio: ['ignore', 'ignore', 'inherit'] }),
  )
  while (!(await accepts(port))) {
    if (child.exitCode !== null) throw new Error(`nginx exited with ${child.exitCode}`)
    await sleep(20)
  }
  return { name, port, child, startSeconds: (performance.now() - started) / 1000 }
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', () => resolve(false))
  })
}

/** What our service answers to the polls. */
export async function fetchAnswers(port: number, polls: readonly Poll[]): Promise<Buffer[]> {
  const answers: Buffer[] = []
  for (const { path, token } of polls) {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, {
      headers: { authorization: `Bearer ${token}` },
    })
    if (!response.ok) throw new Error(`${path}: ${response.status}`)
    answers.push(Buffer.from(await response.arrayBuffer()))
  }
  return answers
}
