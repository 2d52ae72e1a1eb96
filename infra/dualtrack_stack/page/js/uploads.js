/** A message's files on their way: in its request or, where they have no room in it, by an upload before it. */

const ROOM = 4 * 1024 * 1024; // of the files in a request
const MARGIN = 60_000; // milliseconds before an upload expires in which none begins with it
const GONE = new Set(["not_found", "expired", "upload_missing", "upload_used"]);

const uploads = new WeakMap(); // a file → its upload, which a repeated request names again

/** The files in the API's form. */
export function toAttachments(api, files) {
  const large = withoutRoom(files);
  return Promise.all(
    files.map(async (file) =>
      large.has(file)
        ? { upload_id: await uploaded(api, file) }
        : { media_type: file.media_type, name: nameOf(file), data: await base64(file.file) },
    ),
  );
}

/** Forgets the uploads of files whose message was accepted, or refused (`problem`) because of them. */
export function forgetUploads(files, problem) {
  if (!problem || GONE.has(problem.code)) for (const { file } of files) uploads.delete(file);
}

/** The largest files, without which the others fit into a request. Pure. */
export function withoutRoom(files) {
  let taken = 0;
  return new Set(
    [...files]
      .sort((one, other) => one.size - other.size)
      .filter(({ size }) => {
        taken += size;
        return taken > ROOM;
      }),
  );
}

async function uploaded(api, file) {
  const known = uploads.get(file.file);
  if (known && Date.parse(known.expires_at) - Date.now() > MARGIN) return known.upload_id;
  const about = { media_type: file.media_type, bytes: file.size, name: nameOf(file) };
  const upload = await api.upload(about);
  await api.putUpload(upload, file.file);
  uploads.set(file.file, upload);
  return upload.upload_id;
}

const nameOf = ({ name }) => name.slice(-1000);

function base64(file) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result.slice(reader.result.indexOf(",") + 1));
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(file);
  });
}
