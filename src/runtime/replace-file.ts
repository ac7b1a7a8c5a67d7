// Whole-file replacement: readers, also after a crash, see the old content or the new one, and never a part of it.
import { type FileHandle, open, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'

/**
 * Writes a file that only its owner may read (mode 0600), in the place of the one that may be there; a symbolic link is
 * replaced, not followed. Content and name are on the disk when this returns. When it throws, the old file is as it was.
 * A crash can leave a temporary file `<path>.<uuid>.tmp` behind.
 */
export async function replaceFile(
  path: string,
  content: string | ((file: FileHandle) => Promise<void>),
): Promise<void> {
  // A random name: in containers most processes have the same id. The global, since the command line starts 6 ms later
  // with node:crypto.
  const temporary = `${path}.${crypto.randomUUID()}.tmp`
  try {
    await using file = await open(temporary, 'wx', 0o600)
    // The umask may have taken the owner's own permissions away.
    await file.chmod(0o600)
    if (typeof content === 'string') await file.writeFile(content)
    else await content(file)
    await file.sync()
    await rename(temporary, path)
  } catch (error) {
    await rm(temporary, { force: true }).catch(() => {})
    throw error
  }
  await syncFolder(dirname(path))
}

/** Renames a file whose content is on the disk already; its new name is on the disk when this returns. */
export async function moveIntoPlace(temporary: string, path: string): Promise<void> {
  await rename(temporary, path)
  await syncFolder(dirname(path))
}

async function syncFolder(path: string): Promise<void> {
  await using folder = await open(path, 'r')
  try {
    await folder.sync()
  } catch (error) {
    // Some network file systems cannot sync a folder.
    if (!['EINVAL', 'ENOTSUP'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error
  }
}
