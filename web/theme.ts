// How the console looks, where Mantine is told: calm, dense, system fonts.
import { Badge, Button, createTheme, Modal, Table, TextInput, Tooltip } from '@mantine/core'

export const theme = createTheme({
  primaryColor: 'indigo',
  primaryShade: { light: 7, dark: 8 },
  autoContrast: true,
  defaultRadius: 'sm',
  respectReducedMotion: true,
  fontFamily: 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif',
  fontFamilyMonospace: 'ui-monospace, SFMono-Regular, Menlo, Consolas, "Liberation Mono", monospace',
  fontSizes: { xs: '0.75rem', sm: '0.8125rem', md: '0.875rem', lg: '1rem', xl: '1.125rem' },
  headings: { fontWeight: '600', sizes: { h1: { fontSize: '1.25rem' }, h2: { fontSize: '0.9375rem' } } },
  components: {
    Button: Button.extend({ defaultProps: { size: 'xs' } }),
    Badge: Badge.extend({ defaultProps: { variant: 'light', tt: 'none' } }),
    Modal: Modal.extend({
      defaultProps: { closeButtonProps: { 'aria-label': 'Close' }, transitionProps: { duration: 0 } },
    }),
    Table: Table.extend({ defaultProps: { verticalSpacing: 6, horizontalSpacing: 'sm', fz: 'sm' } }),
    TextInput: TextInput.extend({ defaultProps: { size: 'sm' } }),
    Tooltip: Tooltip.extend({ defaultProps: { openDelay: 300, withArrow: true } }),
  },
})
