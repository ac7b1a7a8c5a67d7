// The site: the pages of docs/ as they are, in four groups, with search, dark mode and pictures.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type DefaultTheme, defineConfig } from 'vitepress'
import { slug } from '../slug.ts'

const DOCS = join(import.meta.dirname, '../..')
const { version } = JSON.parse(readFileSync(join(DOCS, '../package.json'), 'utf8')) as { version: string }
/** Where the code is, such as https://git.example.com/flux-resourceset; without it there are no edit links. */
const repository = process.env.DOCS_REPOSITORY
const branch = process.env.DOCS_BRANCH ?? 'main'

/** Sites of other versions, such as `DOCS_VERSIONS=v0.1.0=https://docs.example.com/v0.1.0/`, joined by commas. */
function versions(): DefaultTheme.NavItem {
  const status = { text: 'Status and stability', link: '/why#status-and-stability' }
  const others = (process.env.DOCS_VERSIONS ?? '').split(',').flatMap((pair) => {
    const [, text = '', link] = /^([^=]+)=(.+)$/.exec(pair.trim()) ?? []
    return link === undefined ? [] : [{ text, link }]
  })
  return { text: `v${version}`, items: [status, ...others] }
}

/** docs/README.md has the groups; the bar at the side is made from it. */
function sidebar(): DefaultTheme.SidebarItem[] {
  const sections = readFileSync(join(DOCS, 'README.md'), 'utf8').split(/^## /m).slice(1)
  return sections.map((section) => ({
    text: section.slice(0, section.indexOf('\n')),
    collapsed: false,
    items: [...section.matchAll(/^- \[([^\]]+)\]\(([^)#]+)\.md\)/gm)].map(([, text = '', page = '']) => ({
      text,
      link: `/${page.replace(/(^|\/)README$/, '$1')}`,
    })),
  }))
}

/** Every record, by its number and heading. */
function decisions(): DefaultTheme.SidebarItem[] {
  const files = readdirSync(join(DOCS, 'decisions')).filter((name) => /^\d.*\.md$/.test(name))
  return files.sort().map((name) => ({
    text:
      readFileSync(join(DOCS, 'decisions', name), 'utf8')
        .split('\n', 1)[0]
        ?.replace(/^# /, '') ?? name,
    link: `/decisions/${name.replace(/\.md$/, '')}`,
  }))
}

/** Links out of docs/ lead to the code; where nobody said where that is, the text stays without a link. */
function outside(page: string, href: string): string | undefined {
  const path = join('docs', page, '..', href)
  if (!/^\.\.?\//.test(href) || path.startsWith('docs/')) return undefined
  return repository === undefined ? '' : `${repository}/blob/${branch}/${path}`
}

const groups = sidebar()

export default defineConfig({
  title: 'flux-resourceset',
  description: 'One API for what runs on every cluster of a fleet',
  srcDir: '..',
  srcExclude: ['site/**'],
  outDir: './dist',
  cacheDir: './.cache',
  base: process.env.DOCS_BASE ?? '/',
  rewrites: { 'README.md': 'index.md', 'decisions/README.md': 'decisions/index.md' },
  lastUpdated: false,
  cleanUrls: false,
  metaChunk: true,
  head: [
    ['meta', { name: 'color-scheme', content: 'light dark' }],
    ['link', { rel: 'icon', href: 'data:,' }],
  ],
  vite: {
    plugins: [
      {
        // The pages are outside of this folder, and what they are compiled to imports what is in it.
        name: 'pages-outside',
        enforce: 'pre',
        resolveId(id, importer, options) {
          if (!/^vue(\/|$)/.test(id) || importer === undefined) return undefined
          return this.resolve(id, join(import.meta.dirname, 'config.ts'), { ...options, skipSelf: true })
        },
      },
    ],
  },
  themeConfig: {
    nav: [
      ...groups.map(({ text = '', items = [] }) => ({
        text,
        link: items[0]?.link ?? '/',
        activeMatch: `^$`,
      })),
      versions(),
    ],
    sidebar: {
      '/decisions/': [{ text: 'Decisions', items: decisions() }, ...groups],
      '/': groups,
    },
    outline: [2, 3],
    search: { provider: 'local' },
    ...(repository && {
      editLink: { pattern: `${repository}/edit/${branch}/docs/:path`, text: 'Edit this page' },
      socialLinks: [{ icon: 'git', link: repository }],
    }),
    footer: { message: 'Apache-2.0' },
  },
  markdown: {
    anchor: { slugify: slug },
    config(md) {
      const fence = md.renderer.rules.fence
      md.renderer.rules.fence = (tokens, index, options, env, self) => {
        const token = tokens[index]
        if (token?.info.trim() === 'mermaid') return `<Mermaid code="${encodeURIComponent(token.content)}" />`
        return fence?.(tokens, index, options, env, self) ?? ''
      }
      const inline = md.renderer.rules.code_inline
      md.renderer.rules.code_inline = (tokens, index, options, env, self) => {
        // Braces in code are none of Vue's.
        tokens[index]?.attrSet('v-pre', '')
        return inline?.(tokens, index, options, env, self) ?? ''
      }
      const link = md.renderer.rules.link_open
      md.renderer.rules.link_open = (tokens, index, options, env, self) => {
        const token = tokens[index]
        const url = outside(env.relativePath ?? '', token?.attrGet('href') ?? '')
        if (url === '') return '<a class="elsewhere" title="in the repository">'
        if (url !== undefined) token?.attrSet('href', url)
        return link?.(tokens, index, options, env, self) ?? self.renderToken(tokens, index, options)
      }
    },
  },
})
