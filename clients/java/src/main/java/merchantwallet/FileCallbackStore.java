package merchantwallet;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.UUID;

/** Stores each callback's body as a file of its own. The file's name comes from the eventId. */
public final class FileCallbackStore implements CallbackStore {
    private final Path folder;

    public FileCallbackStore(Path folder) throws IOException {
        this.folder = Files.createDirectories(folder);
    }

    @Override
    public boolean add(Callback callback) throws IOException {
        // A hash is a safe name for any eventId.
        String name = UUID.nameUUIDFromBytes(callback.eventId().getBytes(StandardCharsets.UTF_8)) + ".json";
        Path temporary = folder.resolve(name + "." + UUID.randomUUID());
        try {
            write(temporary, callback.body());
            // A link appears whole or not at all, and only once.
            Files.createLink(folder.resolve(name), temporary);
            syncFolder();
            return true;
        } catch (FileAlreadyExistsException error) {
            return false;
        } finally {
            Files.deleteIfExists(temporary);
        }
    }

    /** So that the name is there after a power cut, too. Systems without POSIX have no such thing. */
    private void syncFolder() throws IOException {
        if (folder.getFileSystem().supportedFileAttributeViews().contains("posix")) {
            try (FileChannel names = FileChannel.open(folder, StandardOpenOption.READ)) {
                names.force(true);
            }
        }
    }

    private static void write(Path path, String body) throws IOException {
        try (FileChannel file = FileChannel.open(path, StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE)) {
            ByteBuffer bytes = StandardCharsets.UTF_8.encode(body);
            while (bytes.hasRemaining()) {
                file.write(bytes);
            }
            file.force(true);
        }
    }
}
