// The measure of things: node:http sending the bytes of one answer, and nothing else.
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'

const [bodyFile = '', port = ''] = process.argv.slice(2)
const body = readFileSync(bodyFile)

createServer(({ headers }, response) => {
  // As ours: Flux never uses a connection again, a proxy does.
  if (headers['x-forwarded-for'] === undefined) response.setHeader('Connection', 'close')
  response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': body.length })
  response.end(body)
}).listen(Number(port), '127.0.0.1')
