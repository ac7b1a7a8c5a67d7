// An editor of the console as its users have it: what stands in it, and typing something else.
import type { Page } from 'playwright-core'

interface Editor {
  text(): Promise<string>
  fill(text: string): Promise<void>
}

export function editor(page: Page, name: string): Editor {
  const box = page.getByRole('textbox', { name, exact: true })
  return {
    // Long texts are drawn only as far as they are in sight: those of tests are short.
    text: async () => {
      await box.waitFor()
      return (await box.locator('.cm-line').allTextContents()).join('\n')
    },
    fill: (text) => box.fill(text),
  }
}
