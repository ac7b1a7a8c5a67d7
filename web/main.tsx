// Starts the console: the providers around everything, and the page's nonce for styles that are made in the browser.
import '@mantine/core/styles.css'
import '@mantine/spotlight/styles.css'
import './console.css'
import { MantineProvider } from '@mantine/core'
import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { RouterProvider } from '@tanstack/react-router'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { ApiProblem } from './api/client.ts'
import { createConsoleRouter } from './router.tsx'
import { theme } from './theme.ts'

const RETRIES = 2

const client = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 5000,
      // A refusal stays one; a service that restarts is back soon.
      retry: (failures, error) =>
        failures < RETRIES && error instanceof ApiProblem && (error.status === 0 || error.status >= 500),
    },
  },
})
const router = createConsoleRouter(client)
const nonce = document.querySelector<HTMLMetaElement>('meta[property="csp-nonce"]')?.nonce ?? ''
// Where the library that stops the page from scrolling behind dialogs looks for it.
Object.assign(globalThis, { __webpack_nonce__: nonce })

createRoot(document.getElementById('root') as HTMLElement).render(
  <StrictMode>
    <MantineProvider theme={theme} defaultColorScheme="auto" getStyleNonce={() => nonce}>
      <QueryClientProvider client={client}>
        <RouterProvider router={router} />
      </QueryClientProvider>
    </MantineProvider>
  </StrictMode>,
)
