// The few icons of the console, as strokes of a 20-pixel grid.
const PATHS = {
  home: 'M3 9.5 10 3l7 6.5M5 8v9h10V8',
  fleet: 'M3 4h6v5H3zM11 4h6v5h-6zM3 11h6v5H3zM11 11h6v5h-6z',
  catalog: 'M10 2 3 6v8l7 4 7-4V6zM3 6l7 4 7-4M10 10v8',
  changes: 'M10 5v5l3 2M3 10a7 7 0 1 0 2-5M3 3v3h3',
  rollouts: 'M3 15h3v-3h4V9h4V6h3',
  access: 'M13 8a3 3 0 1 0-6 0v2h6zM5 10h10v7H5z',
  system: 'M3 4h14v5H3zM3 11h14v5H3zM6 6.5h.01M6 13.5h.01',
  search: 'M9 15A6 6 0 1 0 9 3a6 6 0 0 0 0 12zM13.5 13.5 17 17',
  sun: 'M10 6.5a3.5 3.5 0 1 0 0 7 3.5 3.5 0 0 0 0-7zM10 1v2M10 17v2M1 10h2M17 10h2M4 4l1 1M15 15l1 1M4 16l1-1M15 5l1-1',
  user: 'M10 10a3.5 3.5 0 1 0 0-7 3.5 3.5 0 0 0 0 7zM3.5 17a6.5 6.5 0 0 1 13 0',
  previous: 'M12 4l-6 6 6 6',
  next: 'M8 4l6 6-6 6',
  more: 'M5 10h.01M10 10h.01M15 10h.01',
} as const

export type IconName = keyof typeof PATHS

/** Beside or inside of something that has a name. */
export function Icon({ name, size = 16 }: { readonly name: IconName; readonly size?: number }) {
  return (
    <svg
      viewBox="0 0 20 20"
      width={size}
      height={size}
      fill="none"
      stroke="currentColor"
      strokeWidth="1.6"
      strokeLinecap="round"
      strokeLinejoin="round"
      aria-hidden="true"
    >
      <path d={PATHS[name]} />
    </svg>
  )
}
