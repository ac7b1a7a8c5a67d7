// The service that notes no polls: what noting them costs is the difference to the real one.
import { Fleet } from '../src/engine/fleet/fleet.ts'

Fleet.prototype.notePoll = () => {}
await import('../src/main.ts')
