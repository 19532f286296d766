import java.io.IOException;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import javax.sql.DataSource;
import merchantwallet.Callback;
import merchantwallet.CallbackStore;

/** Callbacks in a table of your database. The primary key makes sure that each event is stored once. */
public final class DatabaseCallbackStore implements CallbackStore {
    public static final String TABLE =
            "CREATE TABLE IF NOT EXISTS wallet_callback (event_id varchar(64) PRIMARY KEY, body text NOT NULL)";

    private final DataSource database;

    public DatabaseCallbackStore(DataSource database) {
        this.database = database;
    }

    @Override
    public boolean add(Callback callback) throws IOException {
        String insert = "INSERT INTO wallet_callback (event_id, body) VALUES (?, ?) ON CONFLICT DO NOTHING";
        try (Connection connection = database.getConnection();
                PreparedStatement statement = connection.prepareStatement(insert)) {
            statement.setString(1, callback.eventId());
            statement.setString(2, callback.body());
            return statement.executeUpdate() == 1;
        } catch (SQLException error) {
            throw new IOException("the callback was not stored", error); // the service sends it again
        }
    }
}
