// The measure of things: node:http sending the compressed bytes of one answer, and nothing else.
import { readFileSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { gzipSync } from 'node:zlib'

const [bodyFile = '', port = '', tlsPort, cert = '', key = ''] = process.argv.slice(2)
const body = gzipSync(readFileSync(bodyFile))

const answer: RequestListener = ({ headers }, response) => {
  // As ours: Flux never uses a connection again, a proxy does.
  if (headers['x-forwarded-for'] === undefined) response.setHeader('Connection', 'close')
  response.writeHead(200, {
    'Content-Type': 'application/json',
    'Content-Encoding': 'gzip',
    'Content-Length': body.length,
  })
  response.end(body)
}
createServer(answer).listen(Number(port), '127.0.0.1')
if (tlsPort !== undefined) {
  const files = { cert: readFileSync(cert), key: readFileSync(key) }
  createTlsServer(files, answer).listen(Number(tlsPort), '127.0.0.1')
}
