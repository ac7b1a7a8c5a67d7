// The page that shows the description of the API, and how it looks beyond what Swagger UI brings.
import swagger from '@fastify/swagger'
import swaggerUi from '@fastify/swagger-ui'
import type { FastifyInstance } from 'fastify'
import type { Node } from './openapi-operation.ts'

/** Swagger UI has a dark scheme, and a switch only in a bar that this page does not have. */
const FOLLOW_SCHEME = `const viewport = document.createElement('meta')
viewport.name = 'viewport'
viewport.content = 'width=device-width, initial-scale=1'
document.head.append(viewport)
const dark = window.matchMedia('(prefers-color-scheme: dark)')
const follow = () => document.documentElement.classList.toggle('dark-mode', dark.matches)
dark.addEventListener('change', follow)
follow()
`

/** No operation has links. Failures look alike: a sentence and an example say it, and a page of them stays short. */
const STYLE = `.swagger-ui .responses-table .response-col_links { display: none }
.swagger-ui .response:is([data-code^='4'], [data-code^='5']) :is(.response-controls, .headers-wrapper, .tab, h5) { display: none }
.swagger-ui .response:is([data-code^='4'], [data-code^='5']) .response-col_description { padding-bottom: 4px }
html.dark-mode .swagger-ui .headers-wrapper .header-col { color: inherit }
@media (max-width: 640px) {
  .swagger-ui .wrapper, .swagger-ui .opblock .opblock-section-header { padding-left: 8px; padding-right: 8px }
  .swagger-ui :is(.responses-inner, .opblock-description-wrapper, .table-container) { padding: 8px }
  .swagger-ui .response-col_status { min-width: 3.5em; width: 3.5em }
  .swagger-ui table.parameters tr { display: block }
}
`

const THEME = {
  title: 'flux-resourceset API',
  css: [{ filename: 'page.css', content: STYLE }],
  js: [{ filename: 'page.js', content: FOLLOW_SCHEME }],
}

/** The page needs nothing but what comes with it; its widgets style themselves inline. */
const CONTENT_SECURITY_POLICY =
  "default-src 'self'; img-src 'self' data:; style-src 'self' 'unsafe-inline'; object-src 'none'; base-uri 'self'; frame-ancestors 'self'"

export async function addDocsPage(scope: FastifyInstance, openapi: () => Node): Promise<void> {
  // The description is made when somebody first asks for it: a start would wait for it otherwise.
  const document = { openapi: '3.1.0', info: { title: '', version: '' }, paths: {} }
  await scope.register(swagger, { mode: 'static', specification: { document } })
  await scope.register(swaggerUi, {
    routePrefix: '/docs',
    staticCSP: CONTENT_SECURITY_POLICY,
    theme: THEME,
    transformSpecification: openapi,
    transformSpecificationClone: false,
    uiConfig: { docExpansion: 'none', layout: 'BaseLayout' },
  })
}
