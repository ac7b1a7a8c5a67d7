// A sentence of the service, with its times as people here write them.

const TIME = /(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z)/

export function Told({ sentence }: { readonly sentence: string }) {
  return sentence.split(TIME).map((part, place) =>
    TIME.test(part) ? (
      // biome-ignore lint/suspicious/noArrayIndexKey: the parts of one sentence keep their places
      <time key={place} dateTime={part} title={part}>
        {new Date(part).toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'short' })}
      </time>
    ) : (
      part
    ),
  )
}
