// How the page that shows the description of the API looks, beyond what Swagger UI brings.

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

export const THEME = {
  title: 'flux-resourceset API',
  css: [{ filename: 'page.css', content: STYLE }],
  js: [{ filename: 'page.js', content: FOLLOW_SCHEME }],
}
