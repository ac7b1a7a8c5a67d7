// The default theme, with pictures that Mermaid draws.
import DefaultTheme from 'vitepress/theme'
import Mermaid from './mermaid.vue'
import './style.css'

export default {
  extends: DefaultTheme,
  enhanceApp({ app }: { app: { component(name: string, component: unknown): void } }) {
    app.component('Mermaid', Mermaid)
  },
}
