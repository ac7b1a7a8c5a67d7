// The content types of request and response bodies.

export const JSON_TYPE = 'application/json'
/** RFC 7396. */
export const MERGE_PATCH = 'application/merge-patch+json'
/** RFC 6902. */
export const JSON_PATCH = 'application/json-patch+json'
/** One JSON object on each line. */
export const NDJSON = 'application/x-ndjson'
export const YAML_TYPE = 'application/yaml'
export const EVENT_STREAM = 'text/event-stream'
